"""The lifecycle machine: one-way, and every pod can finish."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasslet.exchange.facts import Verdict
from glasslet.pods.lifecycle import (
    CleanedUp,
    ContainersStopped,
    Effect,
    Event,
    Finished,
    ImpossibleTransition,
    RanToCompletion,
    State,
    StopRequested,
    Syncing,
    Terminated,
    Terminating,
    advance,
)

ORDER = (Syncing, Terminating, Terminated, Finished)
EVICTED = Verdict(phase="Failed", reason="Evicted")

verdicts = st.none() | st.builds(Verdict, phase=st.just("Failed"), reason=st.sampled_from(["Evicted", "Preempting"]))
stops = st.builds(StopRequested, grace=st.integers(1, 60), verdict=verdicts, removed=st.booleans())
events = (
    stops | st.builds(RanToCompletion, grace=st.integers(1, 60)) | st.just(ContainersStopped()) | st.just(CleanedUp())
)


def walk(happened: list[Event]) -> list[tuple[State, tuple[Effect, ...]]]:
    """The states after each event that can happen, the others left out."""
    state: State = Syncing()
    steps: list[tuple[State, tuple[Effect, ...]]] = [(state, ())]
    for event in happened:
        try:
            state, effects = advance(state, event)
        except ImpossibleTransition:
            continue
        steps.append((state, effects))
    return steps


@given(st.lists(events, max_size=20))
def test_a_pod_never_goes_back(happened: list[Event]) -> None:
    places = [ORDER.index(type(state)) for state, _ in walk(happened)]
    assert places == sorted(places)


@given(st.lists(events, max_size=20))
def test_every_pod_can_finish(happened: list[Event]) -> None:
    state, _ = walk(happened)[-1]
    while not isinstance(state, Finished):
        match state:
            case Syncing():
                state, _ = advance(state, StopRequested(grace=1))
            case Terminating():
                state, _ = advance(state, ContainersStopped())
            case Terminated():
                state, _ = advance(state, CleanedUp())


@given(st.lists(stops, min_size=1, max_size=10))
def test_grace_only_shrinks_and_the_first_verdict_and_a_removal_stay(happened: list[StopRequested]) -> None:
    states = [state for state, _ in walk(list(happened)) if isinstance(state, Terminating)]
    assert states[-1].grace == min(event.grace for event in happened)
    assert states[-1].verdict == next((event.verdict for event in happened if event.verdict), None)
    assert states[-1].removed == any(event.removed for event in happened)


@given(st.lists(events, max_size=30))
def test_a_pod_is_removed_once_and_only_if_no_source_wants_it(happened: list[Event]) -> None:
    steps = walk(happened)
    removals = [effect for _, effects in steps for effect in effects if effect is Effect.REMOVE_POD]
    final = steps[-1][0]
    assert len(removals) == (1 if isinstance(final, Finished) and final.removed else 0)


def test_a_stop_interrupts_the_sync() -> None:
    assert advance(Syncing(), StopRequested(grace=5, verdict=EVICTED)) == (
        Terminating(grace=5, verdict=EVICTED),
        (Effect.INTERRUPT_SYNC, Effect.STOP_CONTAINERS),
    )


def test_a_pod_that_ran_out_is_stopped_without_a_verdict() -> None:
    assert advance(Syncing(), RanToCompletion(grace=30)) == (Terminating(grace=30), (Effect.STOP_CONTAINERS,))


def test_removal_of_a_finished_pod_removes_its_remains() -> None:
    state, effects = advance(Finished(), StopRequested(grace=1, removed=True))
    assert (state, effects) == (Finished(removed=True), (Effect.REMOVE_POD,))


@pytest.mark.parametrize(
    ("state", "event"),
    [(Syncing(), ContainersStopped()), (Syncing(), CleanedUp()), (Terminating(grace=1), CleanedUp())],
)
def test_skipping_a_station_is_a_bug_that_names_itself(state: State, event: Event) -> None:
    with pytest.raises(ImpossibleTransition, match=type(event).__name__):
        advance(state, event)
