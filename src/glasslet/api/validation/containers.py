"""Regular and init containers: what all have in common, and what each kind may and may not have."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from glasslet.api.container import Container, ContainerPort, ContainerResizePolicy, EphemeralContainer
from glasslet.api.field_errors import FieldPath, duplicate, forbidden, invalid, not_supported, required
from glasslet.api.formats import dns_label_problems, port_name_problems, port_number_problems
from glasslet.api.pod import PodSpec
from glasslet.api.restarts import is_sidecar
from glasslet.api.validation.environment import environment_errors
from glasslet.api.validation.mounts import mount_errors
from glasslet.api.validation.probes_and_hooks import lifecycle_errors, probe_errors
from glasslet.api.validation.resources import requirement_errors
from glasslet.api.validation.rules import Errors, named, one_of, present
from glasslet.api.validation.security import container_security_errors
from glasslet.api.validation.volumes import PULL_POLICIES
from glasslet.api.volume import Volume

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_NOT_IN_INIT = "may not be set for init containers without restartPolicy=Always"


class Surroundings(Struct, frozen=True):
    """The part of the pod that a container's rules read; `volumes` are those without errors."""

    spec: PodSpec
    volumes: Mapping[str, Volume]
    claim_names: frozenset[str]

    @property
    def host_users(self) -> bool:
        """Whether the pod uses the host's user namespace."""
        return self.spec.host_users is not False


def container_list_errors(pod: Surroundings, path: FieldPath) -> Errors:
    """`spec.containers`."""
    spec = pod.spec
    if not spec.containers:
        yield required(path)
    names: set[str] = set()
    for number, container in enumerate(spec.containers):
        here = path.at(number)
        yield from common_errors(container, here, pod)
        if container.name in names:
            yield duplicate(here.child("name"), container.name)
        names.add(container.name)
        grace = spec.termination_grace_period_seconds
        yield from lifecycle_errors(container.lifecycle, here.child("lifecycle"), grace, spec.os)
        yield from probe_errors(container, here, grace)
        if container.restart_policy is not None:
            yield forbidden(here.child("restartPolicy"), "may not be set for non-init containers")
    yield from _host_port_conflicts(spec.containers, path)


def init_container_list_errors(pod: Surroundings, path: FieldPath) -> Errors:
    """`spec.initContainers`: plain ones run one by one, sidecars (restartPolicy Always) keep running."""
    spec = pod.spec
    names = {container.name for container in spec.containers}
    for number, container in enumerate(spec.init_containers):
        here = path.at(number)
        yield from common_errors(container, here, pod)
        if container.restart_policy not in (None, "Always"):
            yield not_supported(here.child("restartPolicy"), container.restart_policy, ("Always",))
        if container.name in names:
            yield duplicate(here.child("name"), container.name)
        elif container.name:
            names.add(container.name)
        # Init containers run one by one, so only a container's own ports can be in its way.
        yield from _host_port_conflicts((container,), path)
        if is_sidecar(container):
            grace = spec.termination_grace_period_seconds
            yield from lifecycle_errors(container.lifecycle, here.child("lifecycle"), grace, spec.os)
            yield from probe_errors(container, here, grace)
        else:
            for name, value in (
                ("lifecycle", container.lifecycle),
                ("livenessProbe", container.liveness_probe),
                ("readinessProbe", container.readiness_probe),
                ("startupProbe", container.startup_probe),
            ):
                if value is not None:
                    yield forbidden(here.child(name), _NOT_IN_INIT)
        if container.resize_policy:
            text = "must not be set for init containers"
            yield invalid(here.child("resizePolicy"), container.resize_policy, text)


def image_padding_errors(containers: tuple[Container, ...], path: FieldPath) -> Errors:
    """Image names without blanks around them."""
    for number, container in enumerate(containers):
        if container.image != container.image.strip():
            text = "must not have leading or trailing whitespace"
            yield invalid(path.at(number).child("image"), container.image, text)


def common_errors(container: Container | EphemeralContainer, path: FieldPath, pod: Surroundings) -> Errors:
    """Rules for containers of every kind."""
    yield from named(container.name, path.child("name"), dns_label_problems)
    yield from present(container.image, path.child("image"))
    yield from one_of(container.termination_message_policy, path.child("terminationMessagePolicy"), _MESSAGE_POLICIES)
    yield from _ports(container.ports, path.child("ports"))
    yield from environment_errors(container, path)
    yield from mount_errors(container, path, pod.volumes)
    yield from one_of(container.image_pull_policy, path.child("imagePullPolicy"), PULL_POLICIES)
    yield from requirement_errors(container.resources, path.child("resources"), pod.claim_names)
    yield from _resize(container.resize_policy, path.child("resizePolicy"), pod.spec.restart_policy)
    yield from container_security_errors(
        container.security_context, path.child("securityContext"), host_users=pod.host_users
    )


def _ports(ports: tuple[ContainerPort, ...], path: FieldPath) -> Errors:
    names: set[str] = set()
    for number, port in enumerate(ports):
        here = path.at(number)
        if port.name:
            problems = port_name_problems(port.name)
            for problem in problems:
                yield invalid(here.child("name"), port.name, problem)
            if not problems and port.name in names:
                yield duplicate(here.child("name"), port.name)
            if not problems:
                names.add(port.name)
        if port.container_port == 0:
            yield required(here.child("containerPort"))
        else:
            for problem in port_number_problems(port.container_port):
                yield invalid(here.child("containerPort"), port.container_port, problem)
        if port.host_port != 0:
            for problem in port_number_problems(port.host_port):
                yield invalid(here.child("hostPort"), port.host_port, problem)
        yield from one_of(port.protocol, here.child("protocol"), _PROTOCOLS)


def _host_port_conflicts(containers: tuple[Container, ...], path: FieldPath) -> Errors:
    taken: set[str] = set()
    for number, container in enumerate(containers):
        for index, port in enumerate(container.ports):
            if port.host_port == 0:
                continue
            place = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if place in taken:
                yield duplicate(path.at(number).child("ports").at(index).child("hostPort"), place)
            taken.add(place)


def _resize(policies: tuple[ContainerResizePolicy, ...], path: FieldPath, pod_policy: str) -> Errors:
    seen: set[str] = set()
    for number, policy in enumerate(policies):
        if policy.resource_name in seen:
            yield duplicate(path.at(number), policy.resource_name)
        seen.add(policy.resource_name)
        yield from one_of(policy.resource_name, path, ("cpu", "memory"))
        yield from one_of(policy.restart_policy, path, ("NotRequired", "RestartContainer"))
        if pod_policy == "Never" and policy.restart_policy != "NotRequired":
            yield invalid(path, policy.restart_policy, "must be 'NotRequired' when `restartPolicy` is 'Never'")
