"""A CSI driver's error in words: which call of which driver, and what its gRPC code means. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from glasslet.glass.verdicts.causes import Cause
from glasslet.record.events import Event, Waited
from glasslet.record.stations import WaitKind

_ERROR: Final = re.compile(r"rpc error: code = (?P<code>\w+) desc = (?P<said>.*)$", re.DOTALL)
_CALL: Final = re.compile(r"CSI driver (?P<driver>\S+): (?P<method>\w+)(?: of volume (?P<volume>.*))?")
_AWAY: Final = re.compile(r"failed to connect to all addresses.*?unix:(?P<path>/\S+?)(?::|,| |$)")
_UNIQUE: Final = re.compile(r"kubernetes\.io/csi/(?P<driver>[^^]+)\^(?P<handle>.*)", re.DOTALL)
ATTACH_STEP: Final = (
    "see the VolumeAttachment (kubectl get volumeattachments), the pod's event FailedAttachVolume, and the log of the "
    "driver's external-attacher"
)
_LATER: Final = "the agent tries it again, and undoes it when the pod goes; if it lasts, see the driver's log"
_LOG: Final = "see the log of the driver's pod on this node"
_CODES: Final[Mapping[str, tuple[str, str]]] = {
    "Aborted": ("still works on an earlier call for this volume", _LATER),
    "AlreadyExists": ("has the volume at that place with other properties", _LOG),
    "Canceled": ("was interrupted", _LATER),
    "DeadlineExceeded": ("did not answer in time", _LATER),
    "FailedPrecondition": ("cannot do it in the volume's present state", _LOG),
    "Internal": ("has an internal error", _LOG),
    "InvalidArgument": ("refuses the request as invalid", "correct the volume's attributes, or its StorageClass"),
    "NotFound": ("does not know the volume", "check that the volume behind the PersistentVolume still exists"),
    "OutOfRange": ("cannot give the volume that size", "correct the size"),
    "PermissionDenied": ("is not allowed to", "check the Secret that the volume names, and the driver's rights"),
    "ResourceExhausted": ("has no room for another volume", _LATER),
    "Unauthenticated": ("has no valid credentials", "check the Secret that the volume names"),
    "Unavailable": ("does not answer at its socket, or is not ready", "check that the driver's pod on this node runs"),
    "Unimplemented": ("does not have this call", "check the driver's version"),
    "Unknown": ("failed", _LOG),
}


def failed_call(events: Sequence[Event], volume: str) -> str:
    """The last call of a driver for the volume ("": any) that failed, in the words of its wait; "" without one."""
    for event in reversed(events):
        if isinstance(event, Waited) and event.kind == WaitKind.CSI_CALL and event.outcome == "failed":
            found = _CALL.fullmatch(event.on)
            if found is not None and volume in ("", found["volume"]):
                return event.on
    return ""


def attached_words(unique: str) -> str:
    """A volume by its name in the node's status: `volume h1 of CSI driver d.example`."""
    found = _UNIQUE.fullmatch(unique)
    return f"volume {found['handle']} of CSI driver {found['driver']}" if found is not None else f"volume {unique}"


def driver_cause(said: str, call: str) -> Cause | None:
    """The cause behind an error of a driver, None for another error. `call`: see `failed_call`."""
    error = _ERROR.search(said)
    if error is None:
        return None
    means, step = _CODES.get(error["code"], ("failed", _LOG))
    found = _CALL.fullmatch(call)
    who = f"CSI driver {found['driver']} ({found['method']})" if found is not None else "its CSI driver"
    words = " ".join(error["said"].split())
    if (away := _AWAY.search(words)) is not None:
        # The gRPC library's own words, not the driver's.
        there = "there is no socket" if "No such file" in words else "no process listens"
        return Cause(f"{who} does not answer: {there} at {away['path']}", step)
    return Cause(f"{who} {means} [{error['code']}]{': ' + words if words else ''}", step)
