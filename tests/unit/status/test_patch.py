"""What is sent to the API server about a pod's status."""

from __future__ import annotations

from typing import Any

from glasslet.api.object import PodUID
from glasslet.api.pod_status import PodCondition, PodIP, PodStatus
from glasslet.status.patch import status_patch

UID = PodUID("u1")


def change(old: PodStatus, new: PodStatus) -> dict[str, Any]:
    body = status_patch(UID, old, new)
    assert body is not None
    status: dict[str, Any] = body["status"]
    return status


def test_equal_statuses_need_no_patch() -> None:
    assert status_patch(UID, PodStatus(phase="Running"), PodStatus(phase="Running")) is None


def test_patch_carries_the_uid() -> None:
    # behaviours §6: "A write is: GET of the pod, strategic merge patch of the status subresource carrying metadata.uid"
    body = status_patch(UID, PodStatus(), PodStatus(phase="Running"))
    assert body is not None
    assert body["metadata"] == {"uid": "u1"}


def test_only_what_changed_is_sent() -> None:
    assert change(
        PodStatus(phase="Pending", qos_class="Burstable"), PodStatus(phase="Running", qos_class="Burstable")
    ) == {"phase": "Running"}


def test_field_that_became_empty_is_removed_by_an_explicit_null() -> None:
    assert change(PodStatus(reason="Evicted"), PodStatus()) == {"reason": None}


def test_fields_of_controllers_are_left_alone() -> None:
    # behaviours §6: "resourceClaimStatuses and other API-owned fields are taken over from the API object."
    assert status_patch(UID, PodStatus(nominated_node_name="n"), PodStatus()) is None


def test_addresses_are_replaced_not_merged() -> None:
    assert change(PodStatus(pod_ips=(PodIP(ip="1"),)), PodStatus(pod_ips=(PodIP(ip="2"),))) == {
        "podIPs": [{"$patch": "replace"}, {"ip": "2"}]
    }


def test_an_unchanged_foreign_condition_is_not_sent() -> None:
    foreign = PodCondition(type="acme.io/gate", status="True")
    sent = change(
        PodStatus(conditions=(foreign,)), PodStatus(conditions=(foreign, PodCondition(type="Ready", status="True")))
    )
    assert [c["type"] for c in sent["conditions"]] == ["Ready"]


def test_condition_that_lost_its_reason_says_so() -> None:
    old = PodStatus(conditions=(PodCondition(type="Ready", status="False", reason="ContainersNotReady", message="x"),))
    new = PodStatus(conditions=(PodCondition(type="Ready", status="True"),))
    (sent,) = change(old, new)["conditions"]
    assert (sent["reason"], sent["message"]) == (None, None)
