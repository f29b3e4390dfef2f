"""The stations of a pod's way and the kinds of waits. Record, metrics and documentation use these names."""

from __future__ import annotations

from enum import StrEnum


class Station(StrEnum):
    """The stations, in the order in which a pod passes through them."""

    SEEN = "seen"
    MERGED = "merged"
    WOKEN = "woken"
    ADMITTED = "admitted"
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
"""In the detail of a failed station: this node cannot run the pod's specification; the reason follows."""


class WaitKind(StrEnum):
    """The kinds of waits."""

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
    CSI_CALL = "csi_call"
    DRA_CALL = "dra_call"
    SHUTDOWN = "shutdown"
