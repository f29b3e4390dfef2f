"""When a probe runs: a ticker with the Go kubelet's rules, as arithmetic. Pure; all times are loop seconds.

    anchor ─┬─ tick 0, at once ─┬─ tick 1, a period later ─┬─ ...
            a trigger runs the probe outside of its ticks and moves the anchor to now

A tick that comes while the probe runs is taken right after it; of several only one is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.lifecycle import Probe

NOT_YET = -1
_MOST_SECONDS = 2**31 - 1
_SLACK = 1e-9
"""A tick is not missed because its time cannot be written as a float."""


class Timing(Struct, frozen=True, kw_only=True):
    """A probe's own numbers, in seconds, with the API's defaults for what is not set (0)."""

    period: float
    timeout: float
    initial_delay: float


def timing_of(probe: Probe) -> Timing:
    """The numbers of a probe."""
    return Timing(
        period=_seconds(probe.period_seconds, 10),
        timeout=_seconds(probe.timeout_seconds, 1),
        initial_delay=_seconds(probe.initial_delay_seconds, 0),
    )


def _seconds(number: int, default: int) -> float:
    """The number where it is positive, within the 32 bits of its API field: 68 years."""
    return float(min(number, _MOST_SECONDS) if number > 0 else default)


def first_pause(period: float, agent_age: float, draw: Callable[[], float]) -> float:
    """Seconds that a new worker waits once, before its first tick: after a start of the agent all probes would come at
    the same moment. `draw` gives numbers in [0, 1)."""
    return draw() * period if period > agent_age else 0.0


class Ticks(Struct, frozen=True):
    """A ticker. `taken`: the number of the last tick that was taken."""

    anchor: float
    period: float
    taken: int = NOT_YET

    def next_at(self, not_before: float = -math.inf) -> float:
        """The time of the next tick that is not taken, and not before that time."""
        number = self.taken + 1
        if not_before > self.anchor:
            number = max(number, math.ceil((not_before - self.anchor) / self.period - _SLACK))
        return self.anchor + number * self.period

    def passed(self, now: float) -> Ticks:
        """All ticks up to now are taken."""
        return replace(self, taken=max(self.taken, math.floor((now - self.anchor) / self.period + _SLACK)))

    def restarted(self, now: float) -> Ticks:
        """Now is tick 0, and taken."""
        return replace(self, anchor=now, taken=0)


def probed_from(started_before: float, now: float, initial_delay: float) -> float:
    """From when on a container may be probed. `started_before`: seconds since its start, which counts in whole seconds.
    The wall clock is read once per instance: a later jump neither delays probes nor hurries them."""
    return now - max(started_before, 0.0) + initial_delay
