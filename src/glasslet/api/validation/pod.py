"""A whole pod: what the API server would refuse to create."""

from __future__ import annotations

from glasslet.api.container import ResourceRequirements
from glasslet.api.field_errors import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from glasslet.api.formats import MAX_INT32, in_range_problems, qualified_name_problems
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.validation.container_paths import containers_with_paths
from glasslet.api.validation.containers import (
    Surroundings,
    container_list_errors,
    image_padding_errors,
    init_container_list_errors,
)
from glasslet.api.validation.metadata import metadata_errors
from glasslet.api.validation.names_and_dns import dns_errors, host_alias_errors, host_name_errors, reference_errors
from glasslet.api.validation.resources import requirement_errors, resource_claim_errors
from glasslet.api.validation.rules import Errors, formatted, int32, labels, one_of
from glasslet.api.validation.scheduling import affinity_errors, spread_errors, toleration_errors
from glasslet.api.validation.security import (
    annotation_conflict_errors,
    annotation_profile_errors,
    pod_security_errors,
)
from glasslet.api.validation.volumes import volume_errors

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_MIRROR = "kubernetes.io/config.mirror"


def pod_errors(pod: Pod) -> list[FieldError]:
    """Everything wrong with a defaulted pod; empty when it may be created."""
    metadata, spec = FieldPath("metadata"), FieldPath("spec")
    return [
        *metadata_errors(pod.metadata, metadata),
        *_mirror(pod, metadata.child("annotations")),
        *annotation_profile_errors(pod, metadata.child("annotations")),
        *_spec(pod, spec),
        *_only_in_pods(pod.spec, spec),
        *annotation_conflict_errors(pod, spec),
    ]


def _mirror(pod: Pod, path: FieldPath) -> Errors:
    value = pod.metadata.annotations.get(_MIRROR)
    if value is not None and not pod.spec.node_name:
        yield invalid(path.key(_MIRROR), value, "must set spec.nodeName if mirror pod annotation is set")


def _spec(pod: Pod, path: FieldPath) -> Errors:
    spec = pod.spec
    if spec.termination_grace_period_seconds is None:
        yield required(path.child("terminationGracePeriodSeconds"))
    errors, volumes = volume_errors(spec.volumes, path.child("volumes"), pod.metadata.name)
    yield from errors
    if _MIRROR not in pod.metadata.annotations:
        yield from resource_claim_errors(spec.resource_claims, path.child("resourceClaims"))
    elif spec.resource_claims:
        yield forbidden(path.child("resourceClaims"), "static pods do not support resource claims")
    surroundings = Surroundings(spec, volumes, frozenset(claim.name for claim in spec.resource_claims if claim.name))
    yield from container_list_errors(surroundings, path.child("containers"))
    yield from init_container_list_errors(surroundings, path.child("initContainers"))
    yield from _host_network_ports(spec, path)
    yield from one_of(spec.restart_policy, path.child("restartPolicy"), _RESTART_POLICIES)
    yield from one_of(spec.dns_policy, path.child("dnsPolicy"), _DNS_POLICIES)
    yield from labels(spec.node_selector, path.child("nodeSelector"))
    yield from pod_security_errors(spec, path.child("securityContext"))
    yield from affinity_errors(spec.affinity, path.child("affinity"))
    yield from dns_errors(spec, path.child("dnsConfig"))
    yield from _gates(spec, path)
    yield from spread_errors(spec.topology_spread_constraints, path.child("topologySpreadConstraints"))
    yield from _user_namespace(spec, path)
    yield from host_name_errors(spec, path)
    yield from reference_errors(spec, path)
    yield from toleration_errors(spec.tolerations, path.child("tolerations"))
    yield from host_alias_errors(spec, path.child("hostAliases"))
    yield from _scalars(spec, path)
    overhead = ResourceRequirements(limits=spec.overhead)
    yield from requirement_errors(overhead, path.child("overhead"), frozenset())
    yield from _operating_system(spec, path)
    yield from _environment_files(spec, path)


def _only_in_pods(spec: PodSpec, path: FieldPath) -> Errors:
    if not spec.service_account_name:
        for number, volume in enumerate(spec.volumes):
            for index, source in enumerate(volume.projected.sources if volume.projected else ()):
                if source.service_account_token is not None:
                    here = path.child("volumes").at(number).child("projected", "sources").at(index)
                    text = "must not be specified when serviceAccountName is not set"
                    yield forbidden(here.child("serviceAccountToken"), text)
    yield from image_padding_errors(spec.containers, path.child("containers"))
    yield from image_padding_errors(spec.init_containers, path.child("initContainers"))
    if spec.ephemeral_containers:
        yield forbidden(path.child("ephemeralContainers"), "cannot be set on create")
    if spec.node_name and spec.scheduling_gates:
        yield forbidden(path.child("nodeName"), "cannot be set until all schedulingGates have been cleared")


def _host_network_ports(spec: PodSpec, path: FieldPath) -> Errors:
    if not spec.host_network:
        return
    for number, container in enumerate(spec.containers):
        for index, port in enumerate(container.ports):
            if port.host_port not in (0, port.container_port):
                here = path.child("containers").at(number).child("ports").at(index).child("hostPort")
                yield invalid(here, port.host_port, "must match `containerPort` when `hostNetwork` is true")


def _gates(spec: PodSpec, path: FieldPath) -> Errors:
    for number, readiness in enumerate(spec.readiness_gates):
        here = path.child("readinessGates").at(number).child("conditionType")
        yield from formatted(readiness.condition_type, here, qualified_name_problems)
    names: set[str] = set()
    for number, gate in enumerate(spec.scheduling_gates):
        here = path.child("schedulingGates").at(number)
        yield from formatted(gate.name, here, qualified_name_problems)
        if gate.name in names:
            yield duplicate(here, gate.name)
        names.add(gate.name)


def _user_namespace(spec: PodSpec, path: FieldPath) -> Errors:
    if spec.host_users is not False:
        return
    for name, shared in (("hostNetwork", spec.host_network), ("HostPID", spec.host_pid), ("HostIPC", spec.host_ipc)):
        if shared:
            yield forbidden(path.child(name), "when `hostUsers` is false")
    for container, here in containers_with_paths(spec, path):
        if container.volume_devices:
            yield forbidden(here.child("volumeDevices"), "when `hostUsers` is false")


def _scalars(spec: PodSpec, path: FieldPath) -> Errors:
    deadline = spec.active_deadline_seconds
    if deadline is not None:
        for problem in in_range_problems(deadline, 1, MAX_INT32):
            yield invalid(path.child("activeDeadlineSeconds"), deadline, problem)
    yield from int32(spec.priority or 0, path.child("priority"))
    if spec.preemption_policy is not None:
        yield from one_of(spec.preemption_policy, path.child("preemptionPolicy"), _PREEMPTION_POLICIES)


def _operating_system(spec: PodSpec, path: FieldPath) -> Errors:
    if spec.os is None:
        return
    if not spec.os.name:
        yield required(path.child("os", "name"))
    elif spec.os.name not in ("linux", "windows"):
        yield not_supported(path.child("os"), spec.os.name, ("linux", "windows"))
    elif spec.os.name == "linux":
        text = "windows options cannot be set for a linux pod"
        if spec.security_context is not None and spec.security_context.windows_options is not None:
            yield forbidden(path.child("securityContext", "windowsOptions"), text)
        for container, here in containers_with_paths(spec, path):
            if container.security_context is not None and container.security_context.windows_options is not None:
                yield forbidden(here.child("securityContext", "windowsOptions"), text)


def _environment_files(spec: PodSpec, path: FieldPath) -> Errors:
    volumes = {volume.name: volume for volume in spec.volumes}
    for container, here in containers_with_paths(spec, path):
        for number, variable in enumerate(container.env):
            selector = variable.value_from and variable.value_from.file_key_ref
            if not selector:
                continue
            at = here.child("env").at(number).child("valueFrom", "fileKeyRef", "volumeName")
            volume = volumes.get(selector.volume_name)
            if volume is None:
                yield not_found(at, selector.volume_name)
            elif volume.empty_dir is None:
                yield invalid(at, selector.volume_name, "referenced volume must be of type emptyDir")
