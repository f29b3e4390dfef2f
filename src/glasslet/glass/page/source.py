"""The facts that only the page shows, beside those of `GlassSource`. The assembly fills them in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct, field

from glasslet.answers.live import PressureAnswer

Buckets = tuple[tuple[float, float], ...]
"""Upper bounds in seconds, with the number of observations up to each."""


async def _no_pressure() -> PressureAnswer:
    return PressureAnswer(problem="this agent does not measure its node")


class PageSource(Struct, frozen=True, kw_only=True):
    """Functions that read the agent."""

    calls: Callable[[], Mapping[tuple[str, str], Buckets]] = field(default=dict)
    """How long calls took since the agent's start, by party (`runtime`, `API`) and name."""
    pressure: Callable[[], Awaitable[PressureAnswer]] = _no_pressure
