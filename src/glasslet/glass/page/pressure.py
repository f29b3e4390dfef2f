"""What the node has left of each resource, and below which line pods are evicted: as eviction reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from glasslet.answers.live import PressureAnswer, PressureRow
from glasslet.eviction.explanation import TREND_UNKNOWN, amount_words, arithmetic, trend_words
from glasslet.eviction.reading import Reading, read_node
from glasslet.eviction.services import NodeFigures
from glasslet.eviction.signals import Observation, Signal
from glasslet.eviction.thresholds import Threshold
from glasslet.eviction.trends import Trends
from glasslet.stats.disks.storage import DiskLayout
from glasslet.stats.pages.summary import StatsUnavailable

_AGE_SECONDS = 10.0
_ROWS = {
    Signal.MEMORY: ("memory", "bytes"),
    Signal.ALLOCATABLE_MEMORY: ("memory of all pods", "bytes"),
    Signal.NODEFS: ("disk of the node", "bytes"),
    Signal.NODEFS_INODES: ("inodes of the node's disk", "inodes"),
    Signal.IMAGEFS: ("disk of images", "bytes"),
    Signal.IMAGEFS_INODES: ("inodes of the images' disk", "inodes"),
    Signal.PIDS: ("process ids", "pids"),
}


class PressureReader:
    """Reads the node at most every ten seconds, and only when it is called."""

    def __init__(
        self,
        *,
        figures: NodeFigures,
        thresholds: tuple[Threshold, ...],
        trends: Trends,
        sources: Mapping[Signal, str],
        now: Callable[[], float],
    ) -> None:
        self._figures = figures
        self._thresholds = thresholds
        self._trends = trends
        self._sources = sources
        self._now = now
        self._read_at: float | None = None
        self._answer = PressureAnswer()

    async def __call__(self) -> PressureAnswer:
        """The node, at most ten seconds old."""
        now = self._now()
        if self._read_at is None or now - self._read_at >= _AGE_SECONDS:
            self._read_at = now
            try:
                reading = await read_node(self._figures, self._thresholds, now)
                self._answer = pressure_of(reading, self._trends, self._sources)
            except StatsUnavailable as error:
                self._answer = PressureAnswer(problem=str(error))
        return self._answer


def pressure_of(reading: Reading, trends: Trends, sources: Mapping[Signal, str]) -> PressureAnswer:
    """The rows of one reading. `sources`: the files and calls that each signal comes from. Pure."""
    return PressureAnswer(rows=tuple(_rows(reading, trends, sources)))


def _same_disk(signal: Signal, layout: DiskLayout) -> tuple[Signal, ...]:
    """The signals that are about the same file system: the highest of their lines counts."""
    if layout.layers_apart or signal not in (Signal.NODEFS, Signal.NODEFS_INODES):
        return (signal,)
    inodes = signal is Signal.NODEFS_INODES
    layers = Signal.CONTAINERFS_INODES if inodes else Signal.CONTAINERFS
    if layout.images_apart:
        return signal, layers
    return signal, layers, Signal.IMAGEFS_INODES if inodes else Signal.IMAGEFS


def _rows(reading: Reading, trends: Trends, sources: Mapping[Signal, str]) -> Iterator[PressureRow]:
    layout = reading.layout
    for signal, (resource, unit) in _ROWS.items():
        seen = reading.observations.get(signal)
        of_images = signal in (Signal.IMAGEFS, Signal.IMAGEFS_INODES)
        if seen is None or not seen.capacity or (of_images and not (layout.layers_apart or layout.images_apart)):
            continue
        signals = _same_disk(signal, layout)
        thresholds = [one for one in reading.thresholds if one.signal in signals]
        line = max((one.line(seen.capacity).value() for one in thresholds), default=None)
        per_minute = trends.per_minute(signal, now=reading.taken, available=seen.available)
        yield PressureRow(
            resource=resource,
            capacity=float(seen.capacity),
            available=float(seen.available),
            line=float(line) if line is not None else None,
            unit=unit,
            free=amount_words(signal, seen.available),
            how="; ".join(_how(seen, line, trend_words(seen, thresholds, per_minute), sources.get(signal, ""))),
            at=seen.at,
        )


def _how(seen: Observation, line: int | None, trend: str, source: str) -> Iterator[str]:
    yield arithmetic(seen)
    if line is None:
        yield "no line is set"
    else:
        left = amount_words(seen.signal, max(0, seen.available - line))
        yield f"evicts below {amount_words(seen.signal, line)}, so {left} to go"
    if trend != TREND_UNKNOWN:
        yield trend
    if source:
        yield f"from {source}"
