"""A CSI driver's error in words."""

from __future__ import annotations

import pytest
from grpc import StatusCode

from glasslet.glass.verdicts.csi_words import _CODES, driver_cause, failed_call
from glasslet.record.events import Waited
from glasslet.volumes.csi.errors import code_words

STAGE = "CSI driver d.example: NodeStageVolume of volume pv1"
SAID = 'MountVolume.MountDevice failed for volume "pv1" : rpc error: code = Internal desc = cloud is\naway'


def test_the_words_say_which_call_of_which_driver_and_what_it_said() -> None:
    cause = driver_cause(SAID, STAGE)
    assert cause is not None
    assert cause.words == "CSI driver d.example (NodeStageVolume) has an internal error [Internal]: cloud is away"
    assert "log of the driver's pod" in cause.next_step


@pytest.mark.parametrize("code", [code for code in StatusCode if code not in (StatusCode.OK, StatusCode.DATA_LOSS)])
def test_every_code_has_words_of_its_own(code: StatusCode) -> None:
    assert code_words(code) in _CODES


def test_another_error_is_none_of_a_driver() -> None:
    assert driver_cause('MountVolume.SetUp failed for volume "v" : mount failed', STAGE) is None


def test_the_last_call_that_failed_for_the_volume_is_found() -> None:
    def call(on: str, outcome: str) -> Waited:
        return Waited(0.0, 1.0, "csi_call", on, outcome=outcome)

    other = STAGE.replace("pv1", "pv2")
    events = [call(STAGE, "failed"), call(other, "failed"), call(STAGE.replace("Stage", "Publish"), "ok")]
    assert failed_call(events, "pv1") == STAGE
    assert failed_call(events, "") == other
    assert failed_call(events[2:], "pv1") == ""


def test_a_driver_whose_process_is_gone_is_not_quoted_by_the_librarys_words() -> None:
    said = (
        "rpc error: code = Unavailable desc = failed to connect to all addresses; last error: FAILED_PRECONDITION: "
        "unix:/p/d.example/csi.sock: connect failed: addr: unix:/p/d.example/csi.sock error: Connection refused"
    )
    cause = driver_cause(said, "CSI driver d.example: NodePublishVolume of volume data")
    assert cause is not None
    assert cause.words == (
        "CSI driver d.example (NodePublishVolume) does not answer: no process listens at /p/d.example/csi.sock"
    )
