"""What the container runtime and plugins answer."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import grpc
from google.protobuf.message import DecodeError

from glasslet.api.object import PodUID
from glasslet.devices._generated import deviceplugin_pb2
from glasslet.devices.container_devices import container_devices
from glasslet.devices.plugin import _device as decode_device
from glasslet.plugin_registry._generated import pluginregistration_pb2
from glasslet.runtime.cri import decode, decode_stats
from glasslet.runtime.cri._generated import (
    container_pb2,
    containerd_events_pb2,
    containerd_task_events_pb2,
    image_pb2,
    image_spec_pb2,
    linux_pb2,
    pod_sandbox_pb2,
    runtime_pb2,
    stats_pb2,
)
from glasslet.runtime.cri.containerd_content import layers_of_manifest
from glasslet.runtime.cri.containerd_events import due_of_envelope
from glasslet.runtime.cri.pod_reading import join_pod
from glasslet.runtime.cri.status_codes import translate
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.logs.lines import UnknownLogFormat, decoder_for
from glasslet.runtime.logs.options import LogOptions, LogStream
from tests.fuzz.engine import Target
from tests.fuzz.mutation import filled, mutated
from tests.fuzz.targets.making import bytes_target, message_target

SANDBOX = pod_sandbox_pb2.PodSandboxStatus(
    id="s", created_at=1, metadata=pod_sandbox_pb2.PodSandboxMetadata(name="n", namespace="d", uid="u")
)
LISTED_SANDBOX = pod_sandbox_pb2.PodSandbox(
    id="s", created_at=1, metadata=pod_sandbox_pb2.PodSandboxMetadata(name="n", namespace="d", uid="u")
)
CONTAINER = container_pb2.ContainerStatus(
    id="c",
    created_at=1,
    image_ref="i",
    metadata=container_pb2.ContainerMetadata(name="n"),
    image=image_spec_pb2.ImageSpec(image="i"),
)
LISTED = container_pb2.Container(
    id="c",
    pod_sandbox_id="s",
    created_at=1,
    image_ref="i",
    metadata=container_pb2.ContainerMetadata(name="n"),
    image=image_spec_pb2.ImageSpec(image="i"),
)
TAKEN = b'failed to reserve sandbox name "p_d_u_0": name "p_d_u_0" is reserved for "' + b"0a" * 32 + b'"'
MANIFEST = b'{"schemaVersion": 2, "layers": [{"digest": "sha256:0a", "size": 12, "mediaType": "x"}]}'
CRI_LOG = (
    b"2026-01-02T03:04:05.123456789Z stdout F hello\n2026-01-02T03:04:06.1+02:00 stderr P part\n"
    b"2026-01-02T03:04:06.1+02:00 stderr F rest\n"
)
DOCKER_LOG = b'{"log":"hello\\n","stream":"stdout","time":"2026-01-02T03:04:05.123456789Z"}\n'
LOG_WORDS = (
    b"stdout",
    b"stderr",
    b" F ",
    b" P ",
    b"P:",
    b"+14:00",
    b"-23:59",
    b"9999-12-31T23:59:59",
    b"0001-01-01T00:00:00",
    b"\n",
)
REFUSED = (RuntimeCallError,)
UID = PodUID("u")


def targets() -> list[Target]:
    """All kinds."""
    conditions = [runtime_pb2.RuntimeCondition(type=name, status=True) for name in ("RuntimeReady", "NetworkReady")]
    status = runtime_pb2.StatusResponse(
        status=runtime_pb2.RuntimeStatus(conditions=conditions), info={"config": '{"sandboxImage":"pause:1"}'}
    )
    device = deviceplugin_pb2.Device(ID="d", health="Healthy")
    return [
        message_target("CRI sandbox", _sandbox, pod_sandbox_pb2.PodSandboxStatus, SANDBOX, errors=REFUSED),
        message_target(
            "CRI listed sandbox",
            decode.decode_listed_sandbox,
            pod_sandbox_pb2.PodSandbox,
            LISTED_SANDBOX,
            errors=REFUSED,
        ),
        message_target("CRI container", _container, container_pb2.ContainerStatus, CONTAINER, errors=REFUSED),
        message_target(
            "CRI listed container", decode.decode_listed_container, container_pb2.Container, LISTED, errors=REFUSED
        ),
        message_target("CRI image", _image, image_pb2.Image, image_pb2.Image(id="i", size=5), errors=REFUSED),
        message_target(
            "CRI file system",
            decode.decode_filesystem,
            image_pb2.FilesystemUsage,
            image_pb2.FilesystemUsage(timestamp=1),
            errors=REFUSED,
        ),
        message_target("CRI status", _status, runtime_pb2.StatusResponse, status, errors=REFUSED),
        message_target(
            "CRI resources",
            decode.decode_resources,
            linux_pb2.LinuxContainerResources,
            linux_pb2.LinuxContainerResources(cpu_shares=2),
        ),
        message_target(
            "CRI container stats",
            decode_stats.decode_container_usage,
            stats_pb2.ContainerStats,
            stats_pb2.ContainerStats(),
            errors=REFUSED,
        ),
        message_target(
            "CRI sandbox stats",
            decode_stats.decode_sandbox_usage,
            stats_pb2.PodSandboxStats,
            stats_pb2.PodSandboxStats(),
            errors=REFUSED,
        ),
        bytes_target("image manifest", layers_of_manifest, [MANIFEST]),
        bytes_target("runtime error", _error, [TAKEN, b'the container name "c" is already in use by ' + b"a" * 64]),
        Target("containerd event", _make_envelope, _envelope, (DecodeError,)),
        message_target("device", decode_device, deviceplugin_pb2.Device, device),
        message_target(
            "device allocation",
            _allocation,
            deviceplugin_pb2.ContainerAllocateResponse,
            deviceplugin_pb2.ContainerAllocateResponse(),
        ),
        message_target(
            "plugin info",
            str,
            pluginregistration_pb2.PluginInfo,
            pluginregistration_pb2.PluginInfo(type="DevicePlugin", name="a/b"),
        ),
        bytes_target("log lines", _log, [CRI_LOG, DOCKER_LOG], errors=(UnknownLogFormat,), words=LOG_WORDS),
    ]


def _error(data: bytes) -> object:
    return translate(Verb.CREATE_CONTAINER, grpc.StatusCode.UNKNOWN, data.decode("utf-8", "replace"))


def _sandbox(message: pod_sandbox_pb2.PodSandboxStatus) -> object:
    return join_pod(UID, (decode.decode_sandbox(message),), (), observed_at=0.0)


def _container(message: container_pb2.ContainerStatus) -> object:
    sandbox = decode.decode_sandbox(SANDBOX)
    return join_pod(UID, (sandbox,), (decode.decode_container(message, sandbox.id),), observed_at=0.0)


def _image(message: image_pb2.Image) -> object:
    return decode.decode_image(message), decode.decode_listed_image(message)


def _status(message: runtime_pb2.StatusResponse) -> object:
    return decode.decode_runtime_status(message), decode.decode_sandbox_image(message)


def _allocation(message: deviceplugin_pb2.ContainerAllocateResponse) -> object:
    data = message.SerializeToString()
    return container_devices({"a/b": data, "c/d": data})


EVENTS = {
    "/tasks/exit": containerd_task_events_pb2.TaskExit,
    "/tasks/delete": containerd_task_events_pb2.TaskDelete,
    "/tasks/start": containerd_task_events_pb2.TaskStart,
    "/tasks/oom": containerd_task_events_pb2.TaskOOM,
    "/containers/create": containerd_task_events_pb2.ContainerCreate,
    "/containers/delete": containerd_task_events_pb2.ContainerDelete,
}


def _make_envelope(dice: Random) -> bytes:
    topic = dice.choice(list(EVENTS))
    payload = filled(EVENTS[topic](), dice).SerializeToString()
    if dice.random() < 0.5:
        payload = mutated(payload, dice, [payload])
    envelope = containerd_events_pb2.Envelope(topic=topic)
    envelope.event.value = payload
    data = envelope.SerializeToString()
    return mutated(data, dice, [data]) if dice.random() < 0.3 else data


def _envelope(data: bytes) -> object:
    return due_of_envelope(containerd_events_pb2.Envelope.FromString(data))


OPTIONS = (
    LogOptions(),
    LogOptions(timestamps=True, stream=LogStream.STDERR),
    LogOptions(since=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), timestamps=True),
)


def _log(data: bytes) -> object:
    return [decoder_for(data, options).decode(data) for options in OPTIONS]
