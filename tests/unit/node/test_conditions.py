"""The node's conditions: order, words, times, and the events that changes make."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from glasslet.api.node import NodeCondition
from glasslet.node.inputs import Pressures
from glasslet.node.status.conditions import conditions
from tests.builders.node import NOW, inputs, settings

LATER = NOW + timedelta(minutes=1)


def judge(
    known: tuple[NodeCondition, ...] = (), *errors: str, **changes: Any
) -> tuple[dict[str, NodeCondition], list[str]]:
    found, events = conditions(known, settings(), inputs(**changes), errors)
    return {one.type: one for one in found}, [event.reason for event in events]


def known(*errors: str, **changes: Any) -> tuple[NodeCondition, ...]:
    return tuple(judge((), *errors, **changes)[0].values())


def test_conditions_stand_in_upstreams_order() -> None:
    # behaviours.md §12: "Condition order: MemoryPressure, DiskPressure, PIDPressure, Ready."
    assert list(judge()[0]) == ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]


def test_conditions_of_others_keep_their_places() -> None:
    network = NodeCondition(type="NetworkUnavailable", status="False")
    assert list(judge((network,))[0]) == [
        "NetworkUnavailable",
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
        "Ready",
    ]


def test_a_quiet_node_has_the_quiet_reasons() -> None:
    # behaviours.md §12: "Reasons: KubeletHasInsufficientMemory/KubeletHasSufficientMemory,
    # KubeletHasDiskPressure/KubeletHasNoDiskPressure, KubeletHasInsufficientPID/KubeletHasSufficientPID,
    # KubeletReady/KubeletNotReady."
    found, _ = judge()
    assert [(one.status, one.reason, one.message) for one in found.values()] == [
        ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("True", "KubeletReady", "kubelet is posting ready status"),
    ]


def test_a_node_under_pressure_has_the_other_reasons() -> None:
    found, _ = judge((), "a", pressures=Pressures(memory=True, disk=True, pids=True))
    assert [(one.status, one.reason, one.message) for one in found.values()] == [
        ("True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("True", "KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        ("False", "KubeletNotReady", "a"),
    ]


@pytest.mark.parametrize(
    ("errors", "message"), [(("a",), "a"), (("a", "b"), "[a, b]"), (("a", "b", "a"), "[a, b]"), (("a", "a"), "a")]
)
def test_several_errors_stand_in_one_text(errors: tuple[str, ...], message: str) -> None:
    assert judge((), *errors)[0]["Ready"].message == message


def test_heartbeats_move_and_transitions_stay_while_nothing_changes() -> None:
    found, _ = judge(known(), now=LATER)
    assert {one.last_heartbeat_time for one in found.values()} == {LATER}
    assert {one.last_transition_time for one in found.values()} == {NOW}


def test_another_error_is_told_without_a_transition() -> None:
    ready = judge(known("a"), "b", now=LATER)[0]["Ready"]
    assert (ready.message, ready.last_transition_time) == ("b", NOW)


def test_a_transition_is_when_the_status_changes() -> None:
    assert judge(known("a"), now=LATER)[0]["Ready"].last_transition_time == LATER


def test_a_pressure_keeps_its_words_while_its_status_stays() -> None:
    # events-and-reasons.md: "The message and reason of a pressure condition change only with its status."
    foreign = NodeCondition(type="DiskPressure", status="False", reason="Other", message="said by others")
    kept = judge((foreign,), now=LATER)[0]["DiskPressure"]
    assert (kept.reason, kept.message, kept.last_heartbeat_time) == ("Other", "said by others", LATER)


def test_the_first_report_tells_the_pressures_and_not_the_readiness() -> None:
    # events-and-reasons.md: "pressure condition turned False, also at first report";
    # NodeReady: "none when the condition is first written"
    assert judge()[1] == ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]


def test_an_unchanged_node_tells_nothing() -> None:
    assert judge(known(), now=LATER)[1] == []


@pytest.mark.parametrize(
    ("before", "errors", "event"),
    [((), ("a",), "NodeNotReady"), (("a",), (), "NodeReady")],
)
def test_a_change_of_readiness_is_an_event(before: tuple[str, ...], errors: tuple[str, ...], event: str) -> None:
    assert judge(known(*before), *errors)[1] == [event]


def test_pressures_are_events_when_they_come_and_go() -> None:
    pressed = Pressures(memory=True, disk=True, pids=True)
    assert judge(known(), pressures=pressed)[1] == [
        "NodeHasInsufficientMemory",
        "NodeHasDiskPressure",
        "NodeHasInsufficientPID",
    ]


def test_a_node_that_a_controller_gave_up_says_that_it_is_back() -> None:
    lost = NodeCondition(type="Ready", status="Unknown", reason="NodeStatusUnknown", last_transition_time=NOW)
    found, events = judge((*known()[:3], lost), now=LATER)
    assert (found["Ready"].status, found["Ready"].last_transition_time, events) == ("True", LATER, ["NodeReady"])
