"""Jumps of the wall clock: which are found, how they are told, and when they are forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from glasslet.concurrency.clock_watch import EVERY, SHOWN, ClockWatch


class World:
    """A clock that is set by hand, and the findings that hold."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 1, 1, 10, tzinfo=UTC)
        self.seconds = 100.0
        self.holding: list[str] = []
        self.watch = ClockWatch(clock=self, findings=self)
        self.watch.look()

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.seconds

    def finding(self, text: str) -> None:
        self.holding.append(text)

    def withdrawn(self, text: str) -> None:
        self.holding.remove(text)

    def passes(self, seconds: float = EVERY, jump: float = 0.0) -> None:
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds + jump)
        self.watch.look()


def test_a_clock_that_goes_with_time_is_no_finding() -> None:
    world = World()
    world.passes(jump=1.5)
    world.passes(3000)
    assert world.holding == []


@pytest.mark.parametrize(
    ("jump", "words"),
    [
        (
            3600.0,
            "jumped forward by 3600 s (it was set, or the machine was suspended): from 2026-01-01 10:00:05 UTC to",
        ),
        (-3600.0, "jumped back by 3600 s (it was set): from 2026-01-01 10:00:05 UTC to 2026-01-01 09:00:05 UTC"),
    ],
)
def test_a_jump_is_told_with_its_size_and_both_times(jump: float, words: str) -> None:
    world = World()
    world.passes(jump=jump)
    world.passes()
    assert len(world.holding) == 1
    assert words in world.holding[0]


def test_a_jump_is_forgotten_after_an_hour_whatever_the_clock_says() -> None:
    world = World()
    world.passes(jump=-7200)
    world.passes(SHOWN)
    assert len(world.holding) == 1
    world.passes()
    assert world.holding == []
