"""What is known of a volume after a call that failed."""

from __future__ import annotations

import pytest

from glasslet.volumes.csi.errors import Aftermath
from glasslet.volumes.csi.volume_states import VolumePresence, after_failure

ABSENT, UNCERTAIN, PRESENT = VolumePresence.ABSENT, VolumePresence.UNCERTAIN, VolumePresence.PRESENT


@pytest.mark.parametrize(
    ("aftermath", "before", "after"),
    [
        (Aftermath.UNCERTAIN, ABSENT, UNCERTAIN),
        (Aftermath.UNCERTAIN, UNCERTAIN, UNCERTAIN),
        (Aftermath.UNCERTAIN, PRESENT, PRESENT),
        (Aftermath.TRANSIENT, ABSENT, ABSENT),
        (Aftermath.TRANSIENT, UNCERTAIN, UNCERTAIN),
        (Aftermath.TRANSIENT, PRESENT, PRESENT),
        (Aftermath.FINAL, ABSENT, ABSENT),
        (Aftermath.FINAL, UNCERTAIN, ABSENT),
        (Aftermath.FINAL, PRESENT, PRESENT),
    ],
)
def test_a_failure_leaves_a_volume_as_its_kind_says(
    aftermath: Aftermath, before: VolumePresence, after: VolumePresence
) -> None:
    assert after_failure(before, aftermath, inherited=False) is after


def test_what_an_earlier_agent_left_stays_uncertain_after_a_final_error() -> None:
    assert after_failure(UNCERTAIN, Aftermath.FINAL, inherited=True) is UNCERTAIN
