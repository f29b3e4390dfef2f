"""What of the node pods can have: capacity less reservations less the hard eviction threshold. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.api.quantity import Quantity

_ZERO = Quantity.parse("0")
_THRESHOLDS = {"memory": "memory.available", "ephemeral-storage": "nodefs.available"}


def allocatable(
    capacity: Mapping[str, Quantity], reserved: tuple[Mapping[str, str], ...], eviction_hard: Mapping[str, str]
) -> dict[str, Quantity]:
    """Per resource, never below zero. `reserved`: kubeReserved and systemReserved; percentages refer to capacity."""
    result = {}
    for name, amount in capacity.items():
        left = amount
        for reservation in reserved:
            left -= Quantity.parse(reservation.get(name, "0"))
        if name in _THRESHOLDS:
            left -= threshold(eviction_hard.get(_THRESHOLDS[name], "0"), amount)
        result[name] = max(left, _ZERO)
    return result


def threshold(text: str, capacity: Quantity) -> Quantity:
    """An eviction threshold (`100Mi`, `10%`) as an amount."""
    if text.endswith("%"):
        return Quantity.parse(int(capacity.value() * float(text[:-1]) / 100))
    return Quantity.parse(text)
