"""The parts of a pod's API status that others own: conditions, fields of controllers. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.api.pod import Pod
from glasslet.api.pod_conditions import BY_KUBELET, DISRUPTION_TARGET, OWNED
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_status import PodCondition, PodStatus
from glasslet.exchange.finality import has_ended, standing_end


def taken_over(ours: PodStatus, pod: Pod) -> PodStatus:
    """Our status with what others own of it as the API has it now. A static pod has no status in the API of its own."""
    theirs = pod.status
    if ours is theirs or is_static(pod):
        return ours
    end = standing_end(ours, theirs)
    return replace(
        ours,
        conditions=(*_of_others(ours, theirs), *(c for c in ours.conditions if c.type in OWNED)),
        nominated_node_name=theirs.nominated_node_name,
        resource_claim_statuses=theirs.resource_claim_statuses,
        extended_resource_claim_status=theirs.extended_resource_claim_status,
        qos_class=theirs.qos_class or ours.qos_class,
        start_time=ours.start_time or theirs.start_time,
        phase=end.phase,
        reason=end.reason,
        message=end.message,
    )


def changes_parts_of_others(old: PodStatus, new: PodStatus) -> bool:
    """Whether the API's new status differs from its old one in what others own, and so concerns the pod's work."""
    return _owned_by_others(old) != _owned_by_others(new)


def _of_others(ours: PodStatus, theirs: PodStatus) -> tuple[PodCondition, ...]:
    found = [c for c in theirs.conditions if c.type not in OWNED]
    known = {c.type for c in found}
    own = [c for c in ours.conditions if c.type == DISRUPTION_TARGET and c.reason == BY_KUBELET]
    return (*found, *(c for c in own if c.type not in known))


def _owned_by_others(status: PodStatus) -> tuple[object, ...]:
    return (
        tuple(c for c in status.conditions if c.type not in OWNED),
        status.nominated_node_name,
        status.resource_claim_statuses,
        status.extended_resource_claim_status,
        has_ended(status),
    )
