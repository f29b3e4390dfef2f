"""How the runtime and the API server answer: percentiles of the last minutes, from histograms that only ever grow. Pure
but for its window of earlier readings, which it keeps while a page asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from glasslet.answers.live import CallsAtWork, CallTimes
from glasslet.glass.page.source import Buckets

WINDOW_SECONDS = 300.0
_EVERY_SECONDS = 10.0
_SLOWER = 3.0
_ENOUGH = 5
"""Calls that make a median worth a comparison."""

Reading = Mapping[tuple[str, str], Buckets]


def times_of_calls(
    *, runtime: Callable[[], Mapping[str, Buckets]], api: Callable[[], Mapping[str, Buckets]]
) -> Reading:
    """Both parties' histograms as one reading."""
    of_runtime = {("runtime", call): buckets for call, buckets in runtime().items()}
    return of_runtime | {("API", call): buckets for call, buckets in api().items()}


class CallWindow:
    """Compares the histograms with those of five minutes ago, or since the agent's start if nothing asked then."""

    def __init__(self, read: Callable[[], Reading], now: Callable[[], float]) -> None:
        self._read = read
        self._now = now
        self._kept: deque[tuple[float, Reading]] = deque()

    def read(self) -> CallsAtWork:
        """The calls of the window, the slowest median first."""
        now, reading = self._now(), self._read()
        while len(self._kept) > 1 and self._kept[1][0] <= now - WINDOW_SECONDS:
            self._kept.popleft()
        at, before = self._kept[0] if self._kept else (None, {})
        if at is not None and now - at < WINDOW_SECONDS * 0.9:
            at, before = None, {}
        if not self._kept or now - self._kept[-1][0] >= _EVERY_SECONDS:
            self._kept.append((now, reading))
        rows = [
            (party, times)
            for (party, call), buckets in reading.items()
            if (times := call_times(call, buckets, before.get((party, call), ()))) is not None
        ]
        rows.sort(key=lambda row: -row[1].p50_ms)
        return CallsAtWork(
            runtime=tuple(times for party, times in rows if party == "runtime"),
            api=tuple(times for party, times in rows if party == "API"),
            seconds=now - at if at is not None else None,
        )


def call_times(call: str, buckets: Buckets, before: Buckets) -> CallTimes | None:
    """The times of the calls since `before`; None without any."""
    older = dict(before)
    recent = tuple((bound, count - older.get(bound, 0.0)) for bound, count in buckets)
    if not recent or recent[-1][1] <= 0:
        return None
    p50, always = quantile(recent, 0.5), quantile(buckets, 0.5)
    return CallTimes(
        call=call,
        count=round(recent[-1][1]),
        p50_ms=round(p50 * 1000, 2),
        p90_ms=round(quantile(recent, 0.9) * 1000, 2),
        p99_ms=round(quantile(recent, 0.99) * 1000, 2),
        slow=recent[-1][1] >= _ENOUGH and p50 > _SLOWER * always,
    )


def quantile(buckets: Buckets, part: float) -> float:
    """Seconds below which `part` of the calls stayed, as Prometheus' histogram_quantile estimates it: even within a
    bucket, and never beyond the last bound."""
    rank = part * buckets[-1][1]
    lower, below = 0.0, 0.0
    for bound, count in buckets:
        if count >= rank and count > below:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (rank - below) / (count - below)
        if bound != float("inf"):
            lower = bound
        below = count
    return lower
