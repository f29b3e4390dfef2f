"""Defaults of a whole pod (core/v1 at v1.34, feature gates at their defaults)."""

from __future__ import annotations

from glasslet.api.defaults.container import (
    default_amounts,
    default_container,
    default_host_ports,
    default_requests,
    default_resources,
)
from glasslet.api.defaults.pod_resources import default_pod_resources
from glasslet.api.defaults.sharing import each, with_changes
from glasslet.api.defaults.volume import default_volume
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.security import PodSecurityContext

GRACE_PERIOD_SECONDS = 30


def default_pod(pod: Pod) -> Pod:
    """The pod as the API server would store it. Applying it twice changes nothing more."""
    return with_changes(pod, spec=default_pod_spec(pod.spec))


def default_pod_spec(spec: PodSpec) -> PodSpec:
    """The spec of `default_pod`."""
    spec = with_changes(
        spec,
        containers=each(spec.containers, default_requests),
        init_containers=each(spec.init_containers, default_requests),
    )
    # Requests of the pod as a whole are sums over the containers, so those come first.
    spec = default_pod_resources(spec)
    if spec.host_network:
        spec = with_changes(
            spec,
            containers=each(spec.containers, default_host_ports),
            init_containers=each(spec.init_containers, default_host_ports),
        )
    grace = spec.termination_grace_period_seconds
    return with_changes(
        spec,
        containers=each(spec.containers, default_container),
        init_containers=each(spec.init_containers, default_container),
        ephemeral_containers=each(spec.ephemeral_containers, default_container),
        volumes=each(spec.volumes, default_volume),
        enable_service_links=True if spec.enable_service_links is None else spec.enable_service_links,
        dns_policy=spec.dns_policy or "ClusterFirst",
        restart_policy=spec.restart_policy or "Always",
        security_context=PodSecurityContext() if spec.security_context is None else spec.security_context,
        # A negative period is read as the shortest one.
        termination_grace_period_seconds=GRACE_PERIOD_SECONDS if grace is None else 1 if grace < 0 else grace,
        scheduler_name=spec.scheduler_name or "default-scheduler",
        # The old name of the field is an alias: whichever is set, both read the same afterwards.
        service_account_name=spec.service_account_name or spec.service_account,
        service_account=spec.service_account_name or spec.service_account,
        overhead=default_amounts(spec.overhead),
        resources=spec.resources and default_resources(spec.resources),
    )
