"""Eviction thresholds, from the configuration. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.quantity import Format, Quantity
from glasslet.config.duration import Duration
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.eviction.signals import Signal
from glasslet.resources.allocatable import threshold

_WITHOUT_EFFECT = ("0%", "100%")
_CONTAINERFS = {Signal.CONTAINERFS: Signal.IMAGEFS, Signal.CONTAINERFS_INODES: Signal.IMAGEFS_INODES}
_ON_NODEFS = {Signal.CONTAINERFS: Signal.NODEFS, Signal.CONTAINERFS_INODES: Signal.NODEFS_INODES}


class Threshold(Struct, frozen=True, kw_only=True):
    """`amount` and `minimum_reclaim`: a quantity (`100Mi`) or a percentage of the capacity (`10%`); `grace`: seconds
    for which the signal must be below it. Without grace it is a hard threshold."""

    signal: Signal
    amount: str
    minimum_reclaim: str = "0"
    grace: float = 0.0

    @property
    def hard(self) -> bool:
        """Whether pods end at once."""
        return not self.grace

    def line(self, capacity: int) -> Quantity:
        """The amount below which the signal must not fall."""
        return _amount(self.amount, capacity)

    def wanted(self, capacity: int) -> Quantity:
        """The amount that must be available before the threshold is left alone again."""
        return self.line(capacity) + _amount(self.minimum_reclaim, capacity)


def configured_thresholds(
    configuration: KubeletConfiguration, *, ignore_allocatable: bool = False
) -> tuple[Threshold, ...]:
    """Hard, soft, and the ones that keep the pods' own cgroup from its limit. The configuration is valid."""
    reclaim = configuration.eviction_minimum_reclaim
    graces = {name: Duration.parse(text) for name, text in configuration.eviction_soft_grace_period.items()}
    hard = tuple(_given(configuration.eviction_hard, reclaim, {}))
    soft = tuple(_given(configuration.eviction_soft, reclaim, graces))
    allocatable: list[Threshold] = []
    if "pods" in configuration.enforce_node_allocatable and not ignore_allocatable:
        allocatable = [replace(one, signal=Signal.ALLOCATABLE_MEMORY) for one in hard if one.signal is Signal.MEMORY]
    return (*hard, *soft, *allocatable)


def with_container_disk(thresholds: Iterable[Threshold], *, layers_apart: bool) -> tuple[Threshold, ...]:
    """Adds those of writable layers, which follow the disk that these are on. Configured ones have no effect."""
    kept = tuple(one for one in thresholds if one.signal not in _CONTAINERFS)
    sources = _CONTAINERFS if layers_apart else _ON_NODEFS
    derived = (
        replace(one, signal=signal) for signal, source in sources.items() for one in kept if one.signal is source
    )
    return (*kept, *derived)


def _given(amounts: Mapping[str, str], reclaim: Mapping[str, str], graces: Mapping[str, float]) -> Iterator[Threshold]:
    for name, amount in amounts.items():
        if amount not in _WITHOUT_EFFECT:
            yield Threshold(
                signal=Signal(name),
                amount=amount,
                minimum_reclaim=reclaim.get(name, "0"),
                grace=graces.get(name, 0.0),
            )


def _amount(text: str, capacity: int) -> Quantity:
    """Messages show percentages in binary units, and amounts as they were written."""
    if not text.endswith("%"):
        return Quantity.parse(text)
    return Quantity(threshold(f"{text.rstrip('%')}%", Quantity(capacity)).value(), Format.BINARY_SI)
