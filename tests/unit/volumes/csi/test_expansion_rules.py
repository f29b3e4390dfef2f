"""Whether a volume grows on this node."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from glasslet.api.codec import decode, encode
from glasslet.api.persistent_volume import PersistentVolumeClaim
from glasslet.volumes.csi.expansion_rules import (
    INFEASIBLE,
    NOT_REQUIRED,
    ExpansionNeed,
    begun,
    expansion_need,
    failed,
    finished,
    target_size,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GI = 1 << 30


def claim(has: str = "1Gi", status: str = "", allocated: str = "", **more: Any) -> PersistentVolumeClaim:
    told: dict[str, Any] = {"capacity": {"storage": has}}
    if allocated:
        told["allocatedResources"] = {"storage": allocated}
    if status:
        told["allocatedResourceStatuses"] = {"storage": status}
    meta = {"name": "c", "namespace": "ns", "resourceVersion": "7", "annotations": more.pop("annotations", {})}
    plain = {"metadata": meta, "spec": {"accessModes": more.pop("modes", ["ReadWriteOnce"])}, "status": told | more}
    return decode(encode(plain), PersistentVolumeClaim)


@pytest.mark.parametrize(
    ("one", "need"),
    [
        (claim("1Gi"), ExpansionNeed.EXPAND),
        (claim("2Gi"), ExpansionNeed.NONE),
        (claim("1Gi", "NodeResizePending", "2Gi"), ExpansionNeed.EXPAND),
        (claim("1Gi", "NodeResizeInProgress", "2Gi"), ExpansionNeed.EXPAND),
        (claim("1Gi", "NodeResizeInfeasible", "2Gi"), ExpansionNeed.WAIT),
        (claim("1Gi", "ControllerResizeInProgress", "2Gi"), ExpansionNeed.WAIT),
        (claim("1Gi", "", "2Gi"), ExpansionNeed.WAIT),
        (claim("2Gi", "", "2Gi"), ExpansionNeed.NONE),
        (claim("2Gi", "", "2Gi", modes=["ReadWriteMany"]), ExpansionNeed.EXPAND_HERE_TOO),
        (claim("2Gi", "", "2Gi", modes=["ReadWriteMany"], annotations={NOT_REQUIRED: ""}), ExpansionNeed.NONE),
    ],
)
def test_a_volume_grows_when_its_claim_waits_for_this_node(one: PersistentVolumeClaim, need: ExpansionNeed) -> None:
    assert expansion_need(one, 2 * GI) is need


def test_the_size_is_the_one_that_the_controller_allocated() -> None:
    assert target_size(claim("1Gi", "NodeResizePending", "3Gi"), 2 * GI) == 3 * GI
    assert target_size(claim("1Gi"), 2 * GI) == 2 * GI


def test_a_claim_says_that_it_grows_once_and_only_if_it_keeps_account() -> None:
    assert begun(claim("1Gi")) == {}
    assert begun(claim("1Gi", "NodeResizeInProgress", "2Gi")) == {}
    patch = begun(claim("1Gi", "NodeResizePending", "2Gi"))
    assert patch["metadata"] == {"resourceVersion": "7"}
    assert patch["status"] == {"allocatedResourceStatuses": {"storage": "NodeResizeInProgress"}}


def test_a_finished_expansion_drops_what_was_said_of_it_and_keeps_other_conditions() -> None:
    told = [{"type": "Resizing", "status": "True"}, {"type": "ModifyingVolume", "status": "True"}]
    status = finished(claim("1Gi", "NodeResizeInProgress", "2Gi", conditions=told), 2 * GI)["status"]
    assert status["capacity"] == {"storage": "2Gi"}
    assert status["conditions"] == [{"type": "ModifyingVolume", "status": "True"}]
    assert status["allocatedResourceStatuses"] == {"storage": None}


def test_a_failed_expansion_keeps_its_first_words() -> None:
    one = failed(claim("1Gi", "NodeResizeInProgress", "2Gi"), "no", infeasible=False, now=NOW)["status"]
    assert one["conditions"][0]["message"] == "failed to expand pvc with no"
    assert "allocatedResourceStatuses" not in one
    again = claim("1Gi", "NodeResizeInProgress", "2Gi", conditions=one["conditions"])
    two = failed(again, "other", infeasible=True, now=NOW)["status"]
    assert two["conditions"] == one["conditions"]
    assert two["allocatedResourceStatuses"] == {"storage": INFEASIBLE}
