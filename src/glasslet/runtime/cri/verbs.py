"""The calls of the CRI, by the names that records, metrics and errors use, and their deadlines."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Verb(StrEnum):
    """An RPC of runtime.v1; the value is its name on the wire. `operation` is its label in the kubelet's metrics."""

    VERSION = "Version"
    STATUS = "Status"
    RUN_POD_SANDBOX = "RunPodSandbox"
    STOP_POD_SANDBOX = "StopPodSandbox"
    REMOVE_POD_SANDBOX = "RemovePodSandbox"
    POD_SANDBOX_STATUS = "PodSandboxStatus"
    LIST_POD_SANDBOX = "ListPodSandbox"
    UPDATE_POD_SANDBOX_RESOURCES = "UpdatePodSandboxResources"
    CREATE_CONTAINER = "CreateContainer"
    START_CONTAINER = "StartContainer"
    STOP_CONTAINER = "StopContainer"
    REMOVE_CONTAINER = "RemoveContainer"
    LIST_CONTAINERS = "ListContainers"
    CONTAINER_STATUS = "ContainerStatus"
    UPDATE_CONTAINER_RESOURCES = "UpdateContainerResources"
    REOPEN_CONTAINER_LOG = "ReopenContainerLog"
    CHECKPOINT_CONTAINER = "CheckpointContainer"
    EXEC_SYNC = "ExecSync"
    EXEC = "Exec"
    ATTACH = "Attach"
    PORT_FORWARD = "PortForward"
    CONTAINER_STATS = "ContainerStats"
    LIST_CONTAINER_STATS = "ListContainerStats"
    POD_SANDBOX_STATS = "PodSandboxStats"
    LIST_POD_SANDBOX_STATS = "ListPodSandboxStats"
    UPDATE_RUNTIME_CONFIG = "UpdateRuntimeConfig"
    RUNTIME_CONFIG = "RuntimeConfig"
    GET_CONTAINER_EVENTS = "GetContainerEvents"
    LIST_IMAGES = "ListImages"
    IMAGE_STATUS = "ImageStatus"
    PULL_IMAGE = "PullImage"
    REMOVE_IMAGE = "RemoveImage"
    IMAGE_FS_INFO = "ImageFsInfo"

    @property
    def operation(self) -> str:
        """`operation_type` of `kubelet_runtime_operations*` (`run_podsandbox`)."""
        return _OPERATIONS[self]


def _operation(verb: Verb) -> str:
    """CamelCase to snake_case, but `podsandbox` is one word and resources are not named, as upstream labels them."""
    if verb is Verb.UPDATE_CONTAINER_RESOURCES:
        return "update_container"
    words = "".join("_" + c.lower() if c.isupper() else c for c in verb.value).lstrip("_")
    return words.replace("pod_sandbox", "podsandbox")


_OPERATIONS = {verb: _operation(verb) for verb in Verb}


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds. `request` is `runtimeRequestTimeout`. A deadline of None means: as long as it takes."""

    request: float = 120.0

    @property
    def run_sandbox(self) -> float:
        """Setting up a network may be slow: twice the usual."""
        return 2 * self.request

    def stop_container(self, grace_seconds: int) -> float:
        """The runtime may use all of the grace before it answers."""
        return self.request + max(grace_seconds, 0)

    def checkpoint(self, asked: int) -> int:
        """Whole seconds; less than the usual is not taken."""
        return max(int(self.request), asked)

    def exec_sync(self, command_seconds: float) -> float | None:
        """The command's own limit comes first; 0 means that it has none."""
        return self.request + command_seconds if command_seconds > 0 else None
