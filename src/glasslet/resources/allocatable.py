"""Node allocatable: capacity less reservations less the hard eviction threshold. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from glasslet.api.quantity import ZERO, Quantity
from glasslet.api.resource_names import is_huge_pages

THRESHOLDS = {"memory": "memory.available", "ephemeral-storage": "nodefs.available"}
"""Eviction signals by resource."""


def allocatable(
    capacity: Mapping[str, Quantity], reserved: Iterable[Mapping[str, Quantity]], eviction_hard: Mapping[str, str]
) -> dict[str, Quantity]:
    """Per resource, never below zero. `reserved`: kubeReserved and systemReserved; percentages refer to capacity. Huge
    pages are taken from memory, too: they are not usable as other memory."""
    result = {
        name: _left(amount, _reservation(name, amount, reserved, eviction_hard)) for name, amount in capacity.items()
    }
    for name, amount in capacity.items():
        if is_huge_pages(name) and "memory" in result:
            result["memory"] = _left(result["memory"], amount)
    return result


def _reservation(
    name: str, capacity: Quantity, reserved: Iterable[Mapping[str, Quantity]], eviction_hard: Mapping[str, str]
) -> Quantity:
    """The amount of one resource that is kept from pods."""
    total = sum((one.get(name, ZERO) for one in reserved), ZERO)
    if name in THRESHOLDS:
        total += threshold(eviction_hard.get(THRESHOLDS[name], "0"), capacity)
    return total


def threshold(text: str, capacity: Quantity) -> Quantity:
    """An eviction threshold (`100Mi`, `10%`) as an amount."""
    if text.endswith("%"):
        return Quantity.parse(int(capacity.value() * _share(text)))
    return Quantity.parse(text)


def _share(text: str) -> float:
    """A percentage as a share. Upstream keeps it in single precision, and nodes show it: 10 % of 100 GB are 149 bytes
    more than a tenth."""
    single = struct.Struct("f")
    (percent,) = single.unpack(single.pack(float(text[:-1])))
    (share,) = single.unpack(single.pack(percent / 100))
    return float(share)


def _left(amount: Quantity, taken: Quantity) -> Quantity:
    return max(amount - taken, Quantity.of_nano(0, amount.format))
