"""PodStatus from facts: pure, and the only place that composes one."""

from __future__ import annotations

from collections.abc import Callable

from glasslet.api.pod import Pod
from glasslet.api.pod_conditions import OWNED
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_status import ContainerStatus, HostIP, PodIP, PodStatus
from glasslet.api.restarts import is_sidecar
from glasslet.exchange.facts import StatusFacts, StatusOverride
from glasslet.exchange.finality import outcome
from glasslet.podspec.qos import qos_class
from glasslet.status.conditions import pod_conditions
from glasslet.status.containers import ContainerStatuses, declared_lost, has_run
from glasslet.status.phase import pod_phase


def status_builder(
    runtime_name: str,
    recursive_read_only: Callable[[str], bool] = lambda handler: False,
    *,
    stop_signals: bool = False,
) -> Callable[[StatusFacts], PodStatus]:
    """A builder whose container ids read `<runtime_name>://<id>`. `recursive_read_only`: whether a runtime handler can
    make a mount read-only with all mounts below. `stop_signals`: gate ContainerStopSignals, the runtime's are shown."""

    def build(facts: StatusFacts) -> PodStatus:
        return build_status(facts, runtime_name, recursive_read_only, stop_signals=stop_signals)

    return build


def build_status(
    facts: StatusFacts,
    runtime_name: str,
    recursive_read_only: Callable[[str], bool] = lambda handler: False,
    *,
    stop_signals: bool = False,
) -> PodStatus:
    """The status to publish for these facts."""
    pod, previous = facts.pod, facts.previous
    if facts.verdict is not None and facts.verdict.rejected and facts.observed is None:
        return _rejected(facts, facts.verdict)
    sandboxes = facts.observed.sandboxes if facts.observed else ()
    handler = sandboxes[0].runtime_handler if sandboxes else ""
    statuses = ContainerStatuses(
        facts, runtime_name, recursive_read_only=recursive_read_only(handler), stop_signals=stop_signals
    )
    init, regular, ephemeral = statuses.init(), statuses.regular(), statuses.ephemeral()
    phase, reason, message = outcome(facts, pod_phase(pod, init, regular, ended=_counts_as_ended(facts)))
    if facts.finished and _is_initialized(pod, init, regular):
        regular = declared_lost(regular)
    ips = _pod_ips(facts)
    return PodStatus(
        observed_generation=pod.metadata.generation,
        phase=phase,
        reason=reason,
        message=message,
        conditions=pod_conditions(facts, phase, init, regular),
        host_ip=facts.host_ips[0] if facts.host_ips else "",
        host_ips=tuple(HostIP(ip=ip) for ip in facts.host_ips),
        pod_ip=ips[0] if ips else "",
        pod_ips=tuple(PodIP(ip=ip) for ip in ips),
        start_time=previous.start_time or facts.now.replace(microsecond=0),
        init_container_statuses=init,
        container_statuses=regular,
        ephemeral_container_statuses=ephemeral,
        qos_class=previous.qos_class or qos_class(pod),
        nominated_node_name=previous.nominated_node_name,
        resource_claim_statuses=previous.resource_claim_statuses,
        extended_resource_claim_status=previous.extended_resource_claim_status,
    )


def _rejected(facts: StatusFacts, verdict: StatusOverride) -> PodStatus:
    """The status of a pod that was never begun: only the reason."""
    pod, previous = facts.pod, facts.previous
    return PodStatus(
        observed_generation=pod.metadata.generation,
        phase=verdict.phase,
        reason=verdict.reason,
        message=verdict.message,
        conditions=tuple(c for c in previous.conditions if c.type not in OWNED),
        start_time=previous.start_time or facts.now.replace(microsecond=0),
        qos_class=previous.qos_class or qos_class(pod),
        nominated_node_name=previous.nominated_node_name,
        resource_claim_statuses=previous.resource_claim_statuses,
        extended_resource_claim_status=previous.extended_resource_claim_status,
    )


def _is_initialized(pod: Pod, init: tuple[ContainerStatus, ...], regular: tuple[ContainerStatus, ...]) -> bool:
    done = all(is_sidecar(c) or s.ready for c, s in zip(pod.spec.init_containers, init, strict=True))
    return done or any(has_run(status) for status in regular)


def _counts_as_ended(facts: StatusFacts) -> bool:
    return (facts.terminating or facts.finished) and not is_static(facts.pod)


def _pod_ips(facts: StatusFacts) -> tuple[str, ...]:
    if facts.pod.spec.host_network:
        kept = tuple(entry.ip for entry in facts.previous.pod_ips)
        return kept + tuple(ip for ip in facts.host_ips if ip not in kept)[: 2 - len(kept)]
    sandboxes = facts.observed.sandboxes if facts.observed else ()
    if sandboxes and sandboxes[0].ips:
        return sandboxes[0].ips[:2]
    return tuple(entry.ip for entry in facts.previous.pod_ips)
