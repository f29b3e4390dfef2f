"""Unknown tokens are paid for per source, in bounded memory."""

from __future__ import annotations

from datetime import UTC, datetime

from glasslet.server.access.review_budget import BURST, SOURCES, ReviewBudget


class StandingClock:
    """Stands still unless a test moves it."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.at


def test_a_source_has_a_burst_and_then_one_a_second() -> None:
    clock = StandingClock()
    budget = ReviewBudget(clock)
    assert sum(budget.take("192.0.2.1") for _ in range(100)) == BURST
    clock.at += 3
    assert sum(budget.take("192.0.2.1") for _ in range(100)) == 3
    assert budget.take("192.0.2.2")


def test_what_is_given_back_is_never_more_than_the_burst() -> None:
    budget = ReviewBudget(StandingClock())
    for _ in range(100):
        assert budget.take("192.0.2.1")
        budget.give_back("192.0.2.1")
    for _ in range(100):
        budget.give_back("192.0.2.1")
    assert sum(budget.take("192.0.2.1") for _ in range(100)) == BURST


def test_sources_are_bounded_and_the_quietest_is_forgotten() -> None:
    budget = ReviewBudget(StandingClock())
    for number in range(SOURCES + 10):
        budget.take(f"source-{number}")
    assert len(budget._left) == SOURCES
    assert "source-0" not in budget._left
