"""Defaults of one container of any kind: pull policy, termination message, ports, environment, probes, hooks."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from glasslet.api.container import Container, ContainerPort, EphemeralContainer, ResourceRequirements
from glasslet.api.defaults.sharing import each, with_changes
from glasslet.api.env import EnvVar, ObjectFieldSelector
from glasslet.api.lifecycle import HTTPGetAction, Lifecycle, LifecycleHandler, Probe
from glasslet.api.quantity import Quantity

C = TypeVar("C", Container, EphemeralContainer)

TERMINATION_MESSAGE_PATH = "/dev/termination-log"


def default_pull_policy(image: str) -> str:
    """`Always` for the tag `latest` or no tag at all, `IfNotPresent` for any other tag and for digests."""
    name, digest, _ = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def default_container(container: C) -> C:
    """A container with everything filled in that does not depend on the rest of the pod."""
    return with_changes(
        container,
        image_pull_policy=container.image_pull_policy or default_pull_policy(container.image),
        termination_message_path=container.termination_message_path or TERMINATION_MESSAGE_PATH,
        termination_message_policy=container.termination_message_policy or "File",
        ports=each(container.ports, _port),
        env=each(container.env, _env),
        resources=default_resources(container.resources),
        liveness_probe=_probe(container.liveness_probe),
        readiness_probe=_probe(container.readiness_probe),
        startup_probe=_probe(container.startup_probe),
        lifecycle=_lifecycle(container.lifecycle),
    )


def default_requests(container: Container) -> Container:
    """Requests that are not given equal the limits."""
    limits, requests = container.resources.limits, container.resources.requests
    missing = {name: amount for name, amount in limits.items() if name not in requests}
    if not missing:
        return container
    return replace(container, resources=replace(container.resources, requests={**requests, **missing}))


def default_host_ports(container: Container) -> Container:
    """On the host's network a container port is a host port."""
    return with_changes(
        container,
        ports=each(container.ports, lambda port: with_changes(port, host_port=port.host_port or port.container_port)),
    )


def default_resources(resources: ResourceRequirements) -> ResourceRequirements:
    """Amounts are kept in thousandths at the finest; what is finer is rounded up."""
    return with_changes(
        resources, limits=default_amounts(resources.limits), requests=default_amounts(resources.requests)
    )


def default_amounts(amounts: dict[str, Quantity]) -> dict[str, Quantity]:
    """One map of resource amounts, rounded up to thousandths."""
    rounded = {name: amount.rounded_up_to_milli() for name, amount in amounts.items()}
    return amounts if all(rounded[name] is amounts[name] for name in amounts) else rounded


def default_field_ref(selector: ObjectFieldSelector | None) -> ObjectFieldSelector | None:
    """The API version of a field reference is `v1`."""
    return selector and with_changes(selector, api_version=selector.api_version or "v1")


def _port(port: ContainerPort) -> ContainerPort:
    return with_changes(port, protocol=port.protocol or "TCP")


def _env(variable: EnvVar) -> EnvVar:
    source = variable.value_from
    if source is None:
        return variable
    file_ref = source.file_key_ref
    if file_ref is not None and file_ref.optional is None:
        file_ref = replace(file_ref, optional=False)
    return with_changes(
        variable,
        value_from=with_changes(source, field_ref=default_field_ref(source.field_ref), file_key_ref=file_ref),
    )


def _probe(probe: Probe | None) -> Probe | None:
    if probe is None:
        return None
    grpc = probe.grpc
    if grpc is not None and grpc.service is None:
        grpc = replace(grpc, service="")
    return with_changes(
        probe,
        timeout_seconds=probe.timeout_seconds or 1,
        period_seconds=probe.period_seconds or 10,
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
        http_get=_http_get(probe.http_get),
        grpc=grpc,
    )


def _http_get(action: HTTPGetAction | None) -> HTTPGetAction | None:
    return action and with_changes(action, path=action.path or "/", scheme=action.scheme or "HTTP")


def _lifecycle(lifecycle: Lifecycle | None) -> Lifecycle | None:
    return lifecycle and with_changes(
        lifecycle, post_start=_handler(lifecycle.post_start), pre_stop=_handler(lifecycle.pre_stop)
    )


def _handler(handler: LifecycleHandler | None) -> LifecycleHandler | None:
    return handler and with_changes(handler, http_get=_http_get(handler.http_get))
