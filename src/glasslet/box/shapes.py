"""What of the workloads' fields is used here, at the types of apps/v1, batch/v1 and core/v1. Pure."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from glasslet.api.object import Object

MOST_PODS = 250
"""Of one workload: as many as a node bears."""

Count = Annotated[int, Meta(ge=0, le=MOST_PODS)]
Seconds = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Share = int | str
"""A number, or a percentage of the replicas (`25%`)."""


class TemplateMeta(Object, frozen=True, kw_only=True):
    """Of a template's metadata: what its pods take."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplate(Object, frozen=True, kw_only=True):
    """`core/v1.PodTemplateSpec`. The agent checks the pod's specification."""

    spec: dict[str, Any]
    metadata: TemplateMeta = TemplateMeta()

    def revision(self) -> str:
        """Eight characters that change with the template."""
        return digest(self)


class RollingUpdate(Object, frozen=True, kw_only=True):
    """How many pods an update may have too many or too few of; `partition`: the first ordinal that it changes."""

    max_surge: Share = "25%"
    max_unavailable: Share = "25%"
    partition: Count = 0


class Strategy(Object, frozen=True, kw_only=True):
    """`type` of Deployments: RollingUpdate or Recreate; of StatefulSets and DaemonSets: RollingUpdate or OnDelete."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DeploymentSpec(Object, frozen=True, kw_only=True):
    """Of Deployment, ReplicaSet, ReplicationController and DaemonSet."""

    template: PodTemplate
    replicas: Count = 1
    strategy: Strategy = Strategy()
    update_strategy: Strategy = Strategy()
    min_ready_seconds: Seconds = 0
    paused: bool = False


class ClaimTemplate(Object, frozen=True, kw_only=True):
    """One of `volumeClaimTemplates`."""

    metadata: dict[str, Any]
    spec: dict[str, Any] = {}


class Ordinals(Object, frozen=True, kw_only=True):
    """`start`: the first ordinal."""

    start: Count = 0


class StatefulSetSpec(Object, frozen=True, kw_only=True):
    """`podManagementPolicy`: OrderedReady or Parallel."""

    template: PodTemplate
    replicas: Count = 1
    pod_management_policy: str = "OrderedReady"
    update_strategy: Strategy = Strategy()
    volume_claim_templates: tuple[ClaimTemplate, ...] = ()
    ordinals: Ordinals = Ordinals()
    service_name: str = ""


class JobSpec(Object, frozen=True, kw_only=True):
    """`completions` None with `parallelism`: the first success is enough."""

    template: PodTemplate
    completions: Annotated[int, Meta(ge=0, le=100_000)] | None = None
    parallelism: Count = 1
    backoff_limit: Annotated[int, Meta(ge=0, le=100_000)] = 6
    active_deadline_seconds: Seconds | None = None
    ttl_seconds_after_finished: Seconds | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False


class JobTemplate(Object, frozen=True, kw_only=True):
    """Of a CronJob."""

    spec: JobSpec
    metadata: TemplateMeta = TemplateMeta()


class CronJobSpec(Object, frozen=True, kw_only=True):
    """`schedule` in the time zone `timeZone`, else in that of the machine."""

    schedule: str
    job_template: JobTemplate
    time_zone: str = ""
    concurrency_policy: str = "Allow"
    starting_deadline_seconds: Seconds | None = None
    successful_jobs_history_limit: Count = 3
    failed_jobs_history_limit: Count = 1
    suspend: bool = False


Port = Annotated[int, Meta(ge=1, le=65535)]


class WrittenPort(Object, frozen=True, kw_only=True):
    """`targetPort`: a number, or the name of a container's port; None: `port`."""

    port: Port
    name: str = ""
    protocol: str = "TCP"
    target_port: Port | str | None = None
    node_port: Port | None = None


class WrittenService(Object, frozen=True, kw_only=True):
    """`clusterIP: None` is a headless service."""

    selector: dict[str, str] = {}
    ports: tuple[WrittenPort, ...] = ()
    type: str = "ClusterIP"
    cluster_ip: str = field(default="", name="clusterIP")
    external_name: str = ""
    publish_not_ready_addresses: bool = False


def digest(value: object) -> str:
    """Eight characters that stand for a value."""
    data = msgspec.json.encode(msgspec.to_builtins(value), order="sorted")
    return hashlib.blake2b(data, digest_size=4).hexdigest()


def share_of(share: Share, replicas: int, *, up: bool) -> int | None:
    """A number of pods; None if it is neither a number nor a percentage. `up`: percentages are rounded up."""
    if isinstance(share, int):
        return share if share >= 0 else None
    digits = share.removesuffix("%")
    if digits == share or not (digits.isascii() and digits.isdigit()) or len(digits) > 5:
        return None
    whole = int(digits) * replicas
    return -(-whole // 100) if up else whole // 100
