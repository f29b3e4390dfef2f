"""The lifecycle machine: one-way, and every pod can finish."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasslet.exchange.facts import StatusOverride
from glasslet.pods.lifecycle import (
    CleanedUp,
    ContainersStopped,
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
EVICTED = StatusOverride(phase="Failed", reason="Evicted")

verdicts = st.none() | st.builds(
    StatusOverride, phase=st.just("Failed"), reason=st.sampled_from(["Evicted", "Preempting"])
)
stops = st.builds(StopRequested, grace=st.integers(1, 60), verdict=verdicts, removed=st.booleans())
events = (
    stops | st.builds(RanToCompletion, grace=st.integers(1, 60)) | st.just(ContainersStopped()) | st.just(CleanedUp())
)


def walk(happened: list[Event]) -> list[State]:
    """The states after each event that can happen, the others left out."""
    states: list[State] = [Syncing()]
    for event in happened:
        try:
            states.append(advance(states[-1], event))
        except ImpossibleTransition:
            continue
    return states


@given(st.lists(events, max_size=20))
def test_a_pod_never_goes_back(happened: list[Event]) -> None:
    places = [ORDER.index(type(state)) for state in walk(happened)]
    assert places == sorted(places)


@given(st.lists(events, max_size=20))
def test_every_pod_can_finish(happened: list[Event]) -> None:
    state = walk(happened)[-1]
    while not isinstance(state, Finished):
        match state:
            case Syncing():
                state = advance(state, StopRequested(grace=1))
            case Terminating():
                state = advance(state, ContainersStopped())
            case Terminated():
                state = advance(state, CleanedUp())


@given(st.lists(stops, min_size=1, max_size=10))
def test_grace_only_shrinks_and_the_first_verdict_and_a_removal_stay(happened: list[StopRequested]) -> None:
    states = [state for state in walk(list(happened)) if isinstance(state, Terminating)]
    assert states[-1].grace == min(event.grace for event in happened)
    assert states[-1].verdict == next((event.verdict for event in happened if event.verdict), None)
    assert states[-1].removed == any(event.removed for event in happened)


@given(st.lists(stops, min_size=1, max_size=10))
def test_a_finished_pod_is_removable_once_no_source_wants_it(happened: list[StopRequested]) -> None:
    state: State = Finished()
    for event in happened:
        state = advance(state, event)
    assert isinstance(state, Finished)
    assert state.removed == any(event.removed for event in happened)


def test_a_stop_keeps_its_grace_and_verdict() -> None:
    assert advance(Syncing(), StopRequested(grace=5, verdict=EVICTED)) == Terminating(grace=5, verdict=EVICTED)


def test_a_pod_that_ran_out_is_stopped_without_a_verdict() -> None:
    assert advance(Syncing(), RanToCompletion(grace=30)) == Terminating(grace=30)


@pytest.mark.parametrize(
    ("state", "event"),
    [(Syncing(), ContainersStopped()), (Syncing(), CleanedUp()), (Terminating(grace=1), CleanedUp())],
)
def test_skipping_a_station_is_a_bug_that_names_itself(state: State, event: Event) -> None:
    with pytest.raises(ImpossibleTransition, match=type(event).__name__):
        advance(state, event)
