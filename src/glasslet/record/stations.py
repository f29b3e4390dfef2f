"""The stations of a pod's way. Recorder, breakpoints, metrics and documentation all use these names."""

from __future__ import annotations

from enum import StrEnum


class Station(StrEnum):
    """Where a pod stands, in the order it passes through."""

    SEEN = "seen"
    MERGED = "merged"
    ADMITTED = "admitted"
    WOKEN = "woken"
    PLANNED = "planned"
    CGROUP = "cgroup"
    VOLUMES = "volumes"
    SANDBOX = "sandbox"
    IMAGE = "image"
    INIT = "init"
    CREATED = "created"
    STARTED = "started"
    PROBES = "probes"
    STATUS = "status"
    STOPPING = "stopping"
    GONE = "gone"


UNUSABLE = "cannot be configured: "
"""In the detail of a failed station: it is the pod's specification that cannot be had on this node, and why."""


class WaitKind(StrEnum):
    """What is being waited for."""

    CRI_CALL = "cri_call"
    QUEUE = "queue"
    BACK_OFF = "back_off"
    VOLUME = "volume"
    API_CALL = "api_call"
    PROBE = "probe"
    ADMISSION = "admission"
    GRACE_PERIOD = "grace_period"
    HOOK = "hook"
    EXIT = "exit"
    PAUSE = "pause"
    CGROUP = "cgroup"
    CREDENTIALS = "credentials"
    DEVICE = "device"
