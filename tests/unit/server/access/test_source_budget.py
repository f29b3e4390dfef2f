"""What a source asks for in bulk is paid for, in bounded memory."""

from __future__ import annotations

from glasslet.server.access.source_budget import SOURCES, SourceBudget

BURST = 30.0


class StandingClock:
    """Stands still unless a test moves it."""

    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at


def budget_at(clock: StandingClock) -> SourceBudget:
    return SourceBudget(burst=BURST, per_second=1.0, now=clock.monotonic)


def test_a_source_has_a_burst_and_then_one_a_second() -> None:
    clock = StandingClock()
    budget = budget_at(clock)
    assert sum(budget.take("192.0.2.1") for _ in range(100)) == BURST
    clock.at += 3
    assert sum(budget.take("192.0.2.1") for _ in range(100)) == 3
    assert budget.take("192.0.2.2")


def test_what_is_given_back_is_never_more_than_the_burst() -> None:
    budget = budget_at(StandingClock())
    for _ in range(100):
        assert budget.take("192.0.2.1")
        budget.give_back("192.0.2.1")
    for _ in range(100):
        budget.give_back("192.0.2.1")
    assert sum(budget.take("192.0.2.1") for _ in range(100)) == BURST


def test_sources_are_bounded_and_the_quietest_is_forgotten() -> None:
    budget = budget_at(StandingClock())
    for number in range(SOURCES + 10):
        budget.take(f"source-{number}")
    assert len(budget._left) == SOURCES
    assert "source-0" not in budget._left
