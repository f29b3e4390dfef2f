"""Pods and containers with quiet defaults: what a test does not say is ordinary."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from glasslet.api.container import Container
from glasslet.api.lifecycle import ExecAction, Lifecycle, LifecycleHandler, Probe, SleepAction
from glasslet.api.meta import ObjectMeta
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.pod_update import PodUpdate, UpdateKind

IMAGE = "docker.io/library/busybox:1.36"
UID = "0f1e2d3c"
LONG_AGO = datetime(2025, 12, 31, tzinfo=UTC)


def container(name: str = "main", **fields: Any) -> Container:
    """A container that runs busybox."""
    return Container(
        **{
            "name": name,
            "image": IMAGE,
            "image_pull_policy": "IfNotPresent",
            "termination_message_path": "/dev/termination-log",
            "termination_message_policy": "File",
            **fields,
        }
    )


def sidecar(name: str = "side", **fields: Any) -> Container:
    """A restartable init container."""
    return container(name, restart_policy="Always", **fields)


def pod(*containers: Container, init: tuple[Container, ...] = (), **fields: Any) -> Pod:
    """A static pod `default/web` with policy Always. `fields` are those of the spec, but for uid, name, annotations,
    source, deletion_timestamp and deletion_grace_period_seconds."""
    source = fields.pop("source", "file")
    meta = ObjectMeta(
        name=fields.pop("name", "web"),
        namespace="default",
        uid=fields.pop("uid", UID),
        annotations={"kubernetes.io/config.source": source, **fields.pop("annotations", {})},
        deletion_timestamp=fields.pop("deletion_timestamp", None),
        deletion_grace_period_seconds=fields.pop("deletion_grace_period_seconds", None),
    )
    spec = PodSpec(
        **{
            "containers": containers or (container(),),
            "init_containers": init,
            "restart_policy": "Always",
            "termination_grace_period_seconds": 30,
            "dns_policy": "Default",
            **fields,
        }
    )
    return Pod(api_version="v1", kind="Pod", metadata=meta, spec=spec)


def api_pod(*containers: Container, **fields: Any) -> Pod:
    """The same from the API server."""
    return pod(*containers, source="api", **fields)


def deleted(one: Pod, *, grace: int | None = None) -> Pod:
    """The pod with a deletion mark."""
    meta = replace(one.metadata, deletion_timestamp=LONG_AGO, deletion_grace_period_seconds=grace)
    return replace(one, metadata=meta)


def with_image(one: Pod, image: str) -> Pod:
    """The pod with another image in its first container."""
    first, *others = one.spec.containers
    return replace(one, spec=replace(one.spec, containers=(replace(first, image=image), *others)))


def post_start(*command: str) -> Lifecycle:
    """A lifecycle with an exec postStart hook."""
    return Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=command)))


def pre_stop(*command: str) -> Lifecycle:
    """A lifecycle with an exec preStop hook."""
    return Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=command)))


def pre_stop_sleep(seconds: int) -> Lifecycle:
    """A lifecycle with a sleeping preStop hook."""
    return Lifecycle(pre_stop=LifecycleHandler(sleep=SleepAction(seconds=seconds)))


def probe(**fields: Any) -> Probe:
    """An exec probe."""
    return Probe(exec=ExecAction(command=("true",)), **fields)


def update(one: Pod, kind: UpdateKind = UpdateKind.ADD) -> PodUpdate:
    """What a source says about the pod."""
    source = one.metadata.annotations.get("kubernetes.io/config.source", "api")
    return PodUpdate(kind=kind, pod=one, source=source, seen_at=0.0)
