"""What is taken over from the API's view of a pod."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.pod import Pod
from glasslet.api.pod_status import PodCondition, PodResourceClaimStatus, PodStatus
from glasslet.pods.status.api_status import changes_parts_of_others, taken_over
from tests.builders.pod import LONG_AGO, api_pod, pod

READY = PodCondition(type="Ready", status="True")
UNREADY = PodCondition(type="Ready", status="False")
THEIRS = PodCondition(type="example.com/Gate", status="True")
DISRUPTION = PodCondition(type="DisruptionTarget", status="True", reason="TerminationByKubelet")


def seen(**status: Any) -> Pod:
    return replace(api_pod(), status=PodStatus(**status))


def test_conditions_of_others_come_from_the_api_and_our_own_stay() -> None:
    # behaviours.md §6: "Owned by the kubelet: PodScheduled, Ready, [...]. All others in the API are kept."
    ours = PodStatus(conditions=(replace(THEIRS, status="False"), READY))
    assert taken_over(ours, seen(conditions=(UNREADY, THEIRS))).conditions == (THEIRS, READY)


def test_condition_that_others_removed_is_gone() -> None:
    assert taken_over(PodStatus(conditions=(THEIRS, READY)), seen()).conditions == (READY,)


def test_our_own_disruption_is_kept_until_the_api_shows_it() -> None:
    assert taken_over(PodStatus(conditions=(DISRUPTION,)), seen()).conditions == (DISRUPTION,)
    older = replace(DISRUPTION, reason="DeletionByTaintManager")
    assert taken_over(PodStatus(conditions=(DISRUPTION,)), seen(conditions=(older,))).conditions == (older,)


def test_fields_of_controllers_come_from_the_api() -> None:
    # behaviours.md §6: "resourceClaimStatuses and other API-owned fields are taken over from the API object."
    claims = (PodResourceClaimStatus(name="gpu"),)
    found = taken_over(
        PodStatus(), seen(resource_claim_statuses=claims, nominated_node_name="n9", qos_class="Burstable")
    )
    assert (found.resource_claim_statuses, found.nominated_node_name, found.qos_class) == (claims, "n9", "Burstable")


def test_start_time_is_set_once() -> None:
    # behaviours.md §5: "status.startTime: set when a status is first cached for the pod, never changed after."
    assert taken_over(PodStatus(), seen(start_time=LONG_AGO)).start_time == LONG_AGO
    own = LONG_AGO.replace(year=2020)
    assert taken_over(PodStatus(start_time=own), seen(start_time=LONG_AGO)).start_time == own


@pytest.mark.parametrize(
    ("ours", "theirs", "phase"), [("Running", "Failed", "Failed"), ("Failed", "Running", "Failed")]
)
def test_terminal_phase_is_final_whichever_client_wrote_it(ours: str, theirs: str, phase: str) -> None:
    # behaviours.md §5: "A terminal phase in the API never goes back."
    assert taken_over(PodStatus(phase=ours), seen(phase=theirs)).phase == phase


def test_static_pod_takes_nothing_over() -> None:
    static = replace(pod(), status=PodStatus(phase="Failed", conditions=(THEIRS,)))
    assert taken_over(PodStatus(phase="Running"), static) == PodStatus(phase="Running")


@pytest.mark.parametrize(
    ("new", "tells"),
    [
        (PodStatus(phase="Running", conditions=(READY,)), False),
        (PodStatus(pod_ip="10.0.0.1"), False),
        (PodStatus(conditions=(THEIRS,)), True),
        (PodStatus(phase="Failed"), True),
        (PodStatus(nominated_node_name="n9"), True),
    ],
)
def test_echo_of_our_own_writes_tells_nothing(new: PodStatus, tells: bool) -> None:
    assert changes_parts_of_others(PodStatus(), new) is tells
