"""The places where a pod can be held, and what it does first when it goes on from there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from glasslet.record.stations import Station
from glasslet.record.way import CRI, PLAN

CALLS: Final = (
    *("RunPodSandbox", "StopPodSandbox", "RemovePodSandbox"),
    *("CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "UpdateContainerResources"),
    *("ExecSync", "ImageStatus", "PullImage"),
)
"""Calls of the runtime that are made for one pod. Lists and reads are not among them: observation goes on."""
STATIONS: Final = tuple(str(station) for station in Station)
PLACES: Final = (*STATIONS, PLAN, *(f"{CRI}{call}" for call in CALLS))

BESIDE: Final = frozenset((Station.PROBES, Station.STATUS, f"{CRI}ExecSync"))
"""Places of work that goes on while a pod is held elsewhere. A step does not end there."""
WAY_OUT: Final = frozenset(
    (
        *(Station.STOPPING, Station.GONE),
        *(f"{CRI}{call}" for call in ("StopPodSandbox", "RemovePodSandbox", "StopContainer", "RemoveContainer")),
    )
)
"""The places where a pod that has to stop can be held."""

_NEXT: Final[Mapping[str, str]] = {
    Station.SEEN: "the pod is merged into the desired pods",
    Station.MERGED: "its worker wakes",
    Station.WOKEN: "its worker wakes",
    Station.ADMITTED: "admission",
    Station.PLANNED: "the actions of the plan",
    PLAN: "the actions of the plan",
    Station.CGROUP: "the pod's cgroup is made",
    Station.VOLUMES: "volumes are mounted",
    Station.SANDBOX: "RunPodSandbox",
    Station.IMAGE: "the image is looked for, and pulled if needed",
    Station.INIT: "the init container is started",
    Station.CREATED: "CreateContainer",
    Station.STARTED: "StartContainer",
    Station.PROBES: "the probe",
    Station.STATUS: "the status is sent to the API server",
    Station.STOPPING: "containers and sandbox are stopped",
    Station.GONE: "its object in the API is deleted",
}


def first_work(place: str, *, after: bool) -> str:
    """What the pod does first when it goes on, "" if unknown."""
    if after:
        return ""
    return place.removeprefix(CRI) if place.startswith(CRI) else _NEXT.get(place, "")


def in_words(place: str, *, after: bool) -> str:
    """`sandbox`, `after sandbox`."""
    return f"after {place}" if after else place
