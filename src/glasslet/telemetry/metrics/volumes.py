"""Figures of volumes behind claims, read when somebody scrapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

_LABELS = ("namespace", "persistentvolumeclaim")


class Filesystem(Protocol):
    """A file system's figures (`stats.disk_usage`): bytes and inodes."""

    @property
    def capacity(self) -> int: ...
    @property
    def available(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def inodes(self) -> int: ...
    @property
    def inodes_free(self) -> int: ...


_FAMILIES: tuple[tuple[str, str, Callable[[Filesystem], int]], ...] = (
    ("capacity_bytes", "Bytes that the volume can hold.", lambda f: f.capacity),
    ("available_bytes", "Bytes that are free.", lambda f: f.available),
    ("used_bytes", "Bytes that are used.", lambda f: f.used),
    ("inodes", "Inodes of the volume.", lambda f: f.inodes),
    ("inodes_free", "Inodes that are free.", lambda f: f.inodes_free),
    ("inodes_used", "Inodes that are used.", lambda f: f.inodes - f.inodes_free),
)


class ClaimCollector:
    """Source: metrics.md, `kubelet_volume_stats_*`: once per claim, nothing without one."""

    def __init__(self, figures: Callable[[], Mapping[tuple[str, str], Filesystem]]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        """The families."""
        now = self._figures()
        if not now:
            return
        for name, text, value in _FAMILIES:
            family = GaugeMetricFamily(f"kubelet_volume_stats_{name}", f"[ALPHA] {text}", labels=_LABELS)
            for claim, figures in now.items():
                family.add_metric(claim, value(figures))
            yield family
