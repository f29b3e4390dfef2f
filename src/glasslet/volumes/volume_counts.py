"""Metrics of volumes: durations of operations, numbers of desired and of mounted volumes. No decision depends on them;
a new agent counts from the specs of its pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

MOUNT, MAP, UNMOUNT = "volume_mount", "map_volume", "volume_unmount"
WANTED, HERE = "desired_state_of_world", "actual_state_of_world"
UNKNOWN_PLUGIN = "N/A"
"""Of a volume whose type is not known (yet)."""


class VolumeMetrics(Protocol):
    """`telemetry.metrics.volumes`. Seconds."""

    def operation(self, plugin: str, operation: str, seconds: float, *, failed: bool) -> None: ...
    def mounted(self, plugin: str, seconds_since_wanted: float) -> None: ...


class Uncounted:
    """Implements it."""

    def operation(self, plugin: str, operation: str, seconds: float, *, failed: bool) -> None:
        """Not counted."""

    def mounted(self, plugin: str, seconds_since_wanted: float) -> None:
        """Not counted."""


class _Volume:
    """One of a pod's."""

    __slots__ = ("here", "plugin", "since", "wanted")

    def __init__(self, since: float) -> None:
        self.plugin = UNKNOWN_PLUGIN
        self.since = since
        self.wanted = True
        self.here = False


class VolumeCounts:
    """Volumes by the pod's uid and their name in it, which with a claim is not that of their directory: such a volume
    counts until the whole pod is removed."""

    def __init__(self, metrics: VolumeMetrics | None = None, clock: Callable[[], float] = monotonic) -> None:
        self._metrics: VolumeMetrics = metrics or Uncounted()
        self._clock = clock
        self._volumes: dict[str, dict[str, _Volume]] = {}

    def wanted(self, uid: str, name: str) -> None:
        """The pod is to have it; nothing if that is known."""
        self._volume(uid, name)

    @contextmanager
    def mounting(self, uid: str, name: str, plugin: str, operation: str = MOUNT) -> Iterator[None]:
        """The body sets it up, or looks whether it is as it should be."""
        volume = self._volume(uid, name)
        volume.plugin = plugin
        with self._timed(plugin, operation):
            yield
        if not volume.here:
            volume.here = True
            self._metrics.mounted(plugin, self._clock() - volume.since)

    @contextmanager
    def unmounting(self, uid: str, name: str, plugin: str) -> Iterator[None]:
        """The body unmounts it."""
        with self._timed(plugin, UNMOUNT):
            yield
        self._volumes.get(uid, {}).pop(name, None)

    def unwanted(self, uid: str) -> None:
        """The pod is to have no volumes."""
        for volume in self._volumes.get(uid, {}).values():
            volume.wanted = False

    def forget(self, uid: str) -> None:
        """The pod has no volumes."""
        self._volumes.pop(uid, None)

    def counts(self) -> Mapping[tuple[str, str], int]:
        """How many by plugin and state."""
        found: Counter[tuple[str, str]] = Counter()
        for volumes in self._volumes.values():
            for volume in volumes.values():
                if volume.wanted:
                    found[volume.plugin, WANTED] += 1
                if volume.here:
                    found[volume.plugin, HERE] += 1
        return found

    def _volume(self, uid: str, name: str) -> _Volume:
        of_pod = self._volumes.setdefault(uid, {})
        if name not in of_pod:
            of_pod[name] = _Volume(self._clock())
        of_pod[name].wanted = True
        return of_pod[name]

    @contextmanager
    def _timed(self, plugin: str, operation: str) -> Iterator[None]:
        began, failed = self._clock(), True
        try:
            yield
            failed = False
        finally:
            self._metrics.operation(plugin, operation, self._clock() - began, failed=failed)
