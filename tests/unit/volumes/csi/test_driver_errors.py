"""What a driver's error says of its volume."""

from __future__ import annotations

import pytest
from grpc import StatusCode

from glasslet.volumes.csi.driver_calls import without
from glasslet.volumes.csi.errors import Aftermath, DriverCallFailed

UNCERTAIN = {"CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"}


@pytest.mark.parametrize("code", [code for code in StatusCode if code is not StatusCode.OK])
def test_five_codes_leave_a_volume_uncertain_and_the_others_are_final(code: StatusCode) -> None:
    # behaviours.md §23: "Canceled, DeadlineExceeded, Unavailable, ResourceExhausted, Aborted leave the mount
    # "uncertain" (unstage/unpublish is still called); others are final."
    failed = DriverCallFailed(driver="d", method="NodeStageVolume", code=code, said="no")
    assert (failed.aftermath is Aftermath.UNCERTAIN) == (code.name in UNCERTAIN)


def test_the_text_is_in_the_form_that_tools_know() -> None:
    failed = DriverCallFailed(driver="d", method="M", code=StatusCode.DEADLINE_EXCEEDED, said="slow")
    assert str(failed) == "rpc error: code = DeadlineExceeded desc = slow"
    assert "code = Canceled " in str(DriverCallFailed(driver="d", method="M", code=StatusCode.CANCELLED, said=""))


def test_a_driver_that_repeats_a_secret_is_not_quoted_with_it() -> None:
    assert without("bad key hunter2, hunter22", ["hunter2", "hunter22", ""]) == "bad key ***, ***"
    assert len(without("x" * 10_000, [])) < 2100
