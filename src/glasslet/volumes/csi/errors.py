"""Errors of CSI volumes, by what is known of the volume afterwards.

CSIProblem            what is known of the volume: `aftermath`
├── NotTried          transient: the driver was not asked; the volume is as it was
└── DriverCallFailed  a call failed: its gRPC code says whether it is final or uncertain
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from grpc import StatusCode

from glasslet.volumes.plugin import VolumeProblem

PREFIX: Final = "kubernetes.io/csi: "
"""Of texts that the agent itself makes, as upstream."""

_UNCERTAIN: Final = frozenset(
    {
        StatusCode.CANCELLED,
        StatusCode.DEADLINE_EXCEEDED,
        StatusCode.UNAVAILABLE,
        StatusCode.RESOURCE_EXHAUSTED,
        StatusCode.ABORTED,
    }
)


class Aftermath(StrEnum):
    """What a failure says of the volume."""

    FINAL = "final"
    """It is not there."""
    UNCERTAIN = "uncertain"
    """It may be there, or be on its way: it has to be tried again, or undone."""
    TRANSIENT = "transient"
    """As before: nothing was tried."""


class CSIProblem(VolumeProblem):
    """A CSI volume is not ready."""

    aftermath = Aftermath.FINAL


class NotTried(CSIProblem):
    """Something is missing or wrong before the driver can be asked: the driver, a Secret, a token, the attachment."""

    aftermath = Aftermath.TRANSIENT


class DriverCallFailed(CSIProblem):
    """A driver's answer, or none. `said`: the driver's words, without what it was given as secrets."""

    def __init__(self, *, driver: str, method: str, code: StatusCode, said: str, step: str = "SetUp") -> None:
        super().__init__(f"rpc error: code = {code_words(code)} desc = {said}", step=step)
        self.driver = driver
        self.method = method
        self.code = code
        self.said = said
        self.aftermath = Aftermath.UNCERTAIN if code in _UNCERTAIN else Aftermath.FINAL


def code_words(code: StatusCode) -> str:
    """As Go's gRPC writes it: `DeadlineExceeded`."""
    return "Canceled" if code is StatusCode.CANCELLED else code.name.title().replace("_", "").replace("Ok", "OK")
