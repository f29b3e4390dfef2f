"""Protobuf answers -> the runtime model. An answer without a required field is an error that names the field.

The check follows the kubelet's: a sandbox has id, name, namespace, uid, creation time; a container id, name, creation
time, image, image_ref; an image id and size.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from glasslet.api.object import ContainerID, SandboxID
from glasslet.runtime.cri._generated import container_pb2, image_pb2, linux_pb2, pod_sandbox_pb2, runtime_pb2
from glasslet.runtime.cri.signals import signal_name
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import INCOMPLETE, RuntimeRejected
from glasslet.runtime.model import (
    ContainerPhase,
    FilesystemUsage,
    Image,
    ObservedContainer,
    ObservedSandbox,
    RuntimeCondition,
    RuntimeHandler,
    RuntimeStatus,
)
from glasslet.runtime.spec import Resources

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PHASES: dict[int, ContainerPhase] = {
    container_pb2.CONTAINER_CREATED: ContainerPhase.CREATED,
    container_pb2.CONTAINER_RUNNING: ContainerPhase.RUNNING,
    container_pb2.CONTAINER_EXITED: ContainerPhase.EXITED,
}


def decode_sandbox(status: pod_sandbox_pb2.PodSandboxStatus) -> ObservedSandbox:
    """A sandbox in full detail."""
    meta = status.metadata
    _require(
        Verb.POD_SANDBOX_STATUS,
        ("id", status.id),
        ("metadata.name", meta.name),
        ("metadata.namespace", meta.namespace),
        ("metadata.uid", meta.uid),
        ("created_at", status.created_at),
    )
    ips = (status.network.ip, *(extra.ip for extra in status.network.additional_ips))
    return ObservedSandbox(
        id=SandboxID(status.id),
        attempt=meta.attempt,
        ready=status.state == pod_sandbox_pb2.SANDBOX_READY,
        created_at=_required_time(status.created_at),
        ips=tuple(ip for ip in ips if ip),
        host_network=status.linux.namespaces.options.network == linux_pb2.NODE,
        labels=dict(status.labels),
        annotations=dict(status.annotations),
        runtime_handler=status.runtime_handler,
    )


def decode_listed_sandbox(listed: pod_sandbox_pb2.PodSandbox) -> ObservedSandbox:
    """A sandbox as a list has it: without IPs and namespaces. One that is half made may not have a time yet: that must
    not spoil the list, so it counts as very old."""
    return ObservedSandbox(
        id=SandboxID(listed.id),
        attempt=listed.metadata.attempt,
        ready=listed.state == pod_sandbox_pb2.SANDBOX_READY,
        created_at=_required_time(listed.created_at),
        labels=dict(listed.labels),
        annotations=dict(listed.annotations),
        runtime_handler=listed.runtime_handler,
    )


def decode_container(status: container_pb2.ContainerStatus, sandbox: SandboxID) -> ObservedContainer:
    """A container in full detail. The protocol's status does not name the sandbox: the caller knows it, or "" """
    _require(
        Verb.CONTAINER_STATUS,
        ("id", status.id),
        ("metadata.name", status.metadata.name),
        ("created_at", status.created_at),
        ("image.image", status.image.image),
        ("image_ref", status.image_ref),
    )
    return ObservedContainer(
        id=ContainerID(status.id),
        name=status.metadata.name,
        attempt=status.metadata.attempt,
        phase=_PHASES.get(status.state, ContainerPhase.UNKNOWN),
        sandbox_id=sandbox,
        created_at=_required_time(status.created_at),
        started_at=decode_time(status.started_at),
        finished_at=decode_time(status.finished_at),
        exit_code=status.exit_code,
        reason=_bounded(status.reason, _REASON),
        message=_bounded(status.message, _MESSAGE),
        image=status.image.image,
        image_ref=status.image_ref,
        image_id=status.image_id,
        image_handler=status.image.runtime_handler,
        log_path=status.log_path,
        labels=dict(status.labels),
        annotations=dict(status.annotations),
        resources=decode_resources(status.resources.linux) if status.resources.HasField("linux") else None,
        user=_user(status.user) if status.user.HasField("linux") else None,
        stop_signal=signal_name(status.stop_signal),
    )


def decode_listed_container(listed: container_pb2.Container) -> ObservedContainer:
    """A container as a list has it: without exit code, times, resources; half made ones as with sandboxes."""
    return ObservedContainer(
        id=ContainerID(listed.id),
        name=listed.metadata.name,
        attempt=listed.metadata.attempt,
        phase=_PHASES.get(listed.state, ContainerPhase.UNKNOWN),
        sandbox_id=SandboxID(listed.pod_sandbox_id),
        created_at=_required_time(listed.created_at),
        image=listed.image.image,
        image_ref=listed.image_ref,
        image_id=listed.image_id,
        image_handler=listed.image.runtime_handler,
        labels=dict(listed.labels),
        annotations=dict(listed.annotations),
    )


def decode_resources(resources: linux_pb2.LinuxContainerResources) -> Resources:
    """LinuxContainerResources."""
    return Resources(
        cpu_period=resources.cpu_period,
        cpu_quota=resources.cpu_quota,
        cpu_shares=resources.cpu_shares,
        memory_limit_in_bytes=resources.memory_limit_in_bytes,
        oom_score_adj=resources.oom_score_adj,
        cpuset_cpus=resources.cpuset_cpus,
        cpuset_mems=resources.cpuset_mems,
        hugepage_limits=tuple((limit.page_size, limit.limit) for limit in resources.hugepage_limits),
        unified=dict(resources.unified),
        memory_swap_limit_in_bytes=resources.memory_swap_limit_in_bytes,
    )


def decode_image(image: image_pb2.Image) -> Image:
    """An image of ImageStatus."""
    _require(Verb.IMAGE_STATUS, ("image.id", image.id), ("image.size", image.size))
    return decode_listed_image(image)


def decode_listed_image(image: image_pb2.Image) -> Image:
    """An image of a list. A half-pulled one is no reason to refuse the others."""
    return Image(
        id=image.id,
        tags=tuple(image.repo_tags),
        digests=tuple(image.repo_digests),
        size=image.size,
        uid=image.uid.value if image.HasField("uid") else None,
        username=image.username,
        pinned=image.pinned,
        runtime_handler=image.spec.runtime_handler,
    )


def decode_filesystem(usage: image_pb2.FilesystemUsage) -> FilesystemUsage:
    """FilesystemUsage."""
    return FilesystemUsage(
        mountpoint=usage.fs_id.mountpoint,
        used_bytes=usage.used_bytes.value,
        inodes_used=usage.inodes_used.value,
        timestamp=decode_time(usage.timestamp),
    )


def decode_runtime_status(answer: runtime_pb2.StatusResponse) -> RuntimeStatus:
    """Conditions, handlers and features of the runtime. Without RuntimeReady and NetworkReady the answer is refused."""
    conditions = tuple(
        RuntimeCondition(
            type=c.type, status=c.status, reason=_bounded(c.reason, _REASON), message=_bounded(c.message, _MESSAGE)
        )
        for c in answer.status.conditions
    )
    if not answer.HasField("status") or len(conditions) < _CONDITIONS:
        raise lacking(Verb.STATUS, "status.conditions (RuntimeReady and NetworkReady)")
    return RuntimeStatus(
        conditions=conditions,
        handlers=tuple(
            RuntimeHandler(
                name=handler.name,
                recursive_read_only_mounts=handler.features.recursive_read_only_mounts,
                user_namespaces=handler.features.user_namespaces,
            )
            for handler in answer.runtime_handlers
        ),
        supplemental_groups_policy=answer.features.supplemental_groups_policy,
        network_load=_network_load(answer),
    )


def _network_load(answer: runtime_pb2.StatusResponse) -> str:
    """The error in containerd's verbose status, which holds a JSON string: `OK`, or the error."""
    said = answer.info.get("lastCNILoadStatus", "").strip().strip('"')
    return "" if said == "OK" else _bounded(said, _MESSAGE)


def decode_sandbox_image(answer: runtime_pb2.StatusResponse) -> str:
    """The sandbox image in containerd's verbose status; "" where the status has no such configuration."""
    try:
        config = json.loads(answer.info.get("config", "{}"))
    except (ValueError, RecursionError):
        return ""
    image = config.get("sandboxImage", "") if isinstance(config, dict) else ""
    return image if isinstance(image, str) else ""


_CONDITIONS = 2
_REASON = 1024
_MESSAGE = 32 * 1024
"""Characters: these texts go into statuses, which the API server takes only up to a size."""


def _bounded(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "... (cut)"


def lacking(verb: Verb, field: str) -> RuntimeRejected:
    """The error for an answer without a field that it must have."""
    return RuntimeRejected(verb, f"the runtime's answer lacks {field}", code=INCOMPLETE)


def _require(verb: Verb, *fields: tuple[str, object]) -> None:
    for name, value in fields:
        if not value:
            raise lacking(verb, name)


def _required_time(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def decode_time(nanoseconds: int) -> datetime | None:
    """Nanoseconds since the epoch; 0 means that it did not happen."""
    return _required_time(nanoseconds) if nanoseconds > 0 else None


def _user(user: container_pb2.ContainerUser) -> tuple[int, int, tuple[int, ...]]:
    return (user.linux.uid, user.linux.gid, tuple(user.linux.supplemental_groups))
