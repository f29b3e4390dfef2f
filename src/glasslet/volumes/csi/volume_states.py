"""What is known of a volume after a call, and after a failure. Pure.

not there ──call──▶ uncertain ──succeeded──▶ there
    ▲                   │
    └──── final ────────┘      what an earlier agent left stays uncertain until a call succeeds
"""

from __future__ import annotations

from enum import StrEnum

from glasslet.volumes.csi.errors import Aftermath


class VolumePresence(StrEnum):
    """Whether a driver has put a volume somewhere."""

    ABSENT = "absent"
    UNCERTAIN = "uncertain"
    PRESENT = "present"


def after_failure(before: VolumePresence, aftermath: Aftermath, *, inherited: bool) -> VolumePresence:
    """The state after a stage or publish that failed. `inherited`: an earlier agent's note was there."""
    if before is VolumePresence.PRESENT or aftermath is Aftermath.TRANSIENT:
        return before
    if aftermath is Aftermath.UNCERTAIN or inherited:
        return VolumePresence.UNCERTAIN
    return VolumePresence.ABSENT
