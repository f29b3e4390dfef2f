"""The verdict about a pod that admission refused: the one thing that did not fit."""

from __future__ import annotations

import re
from typing import Final

from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.why import VerdictAnswer
from glasslet.glass.trace.timeline import moment
from glasslet.glass.trace.waterfall import latest_life
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.events import Decided
from glasslet.record.lasting import REJECTED

MISFIT: Final = "does not fit"
"""Decision in the record, beside `rejected`: what did not fit, with what the node has."""
_REJECTED: Final = "Pod was rejected: "
_SHORTAGE: Final = re.compile(
    r"Node didn't have enough resource: (?P<name>\S+), requested: (?P<asked>\d+), used: (?P<used>\d+), "
    r"capacity: (?P<all>\d+)"
)
_NO_VICTIMS: Final = re.compile(
    r"no set of running pods found to reclaim resources: \[\(res: (?P<name>\S+), q: (?P<missing>\d+)\)"
)
_PRESSURE: Final = re.compile(r"The node had condition: \[(?P<which>[^\]]+)\]")
_LACKS: Final = {"MemoryPressure": "memory", "DiskPressure": "disk space or inodes", "PIDPressure": "process IDs"}
_BYTES: Final = ("memory", "ephemeral-storage")
_NEXT: Final = {
    "NodeAffinity": "label the node, or correct the pod's nodeSelector or affinity",
    "NodeName": "correct spec.nodeName",
    "UnexpectedAdmissionError": "delete a pod of this node, or make the node larger",
    "Evicted": "see what the node has left (glasslet why node) and free some; if memory is low, a pod that "
    "requests some is taken anyway",
    "NodePorts": "use another host port, or delete the pod that holds it",
    "PodOSNotSupported": "correct spec.os, or bind the pod to another node",
    "SysctlForbidden": "allow the sysctl on this node (allowedUnsafeSysctls), or leave it out",
    "SMTAlignmentError": "ask for a multiple of the threads of a core, or for less",
    "TopologyAffinityError": "see who has the NUMA nodes (glasslet node resources), delete such a pod or ask for less",
    "AppArmor": "load the profile on this node, or correct securityContext.appArmorProfile",
    "TaintToleration": "remove the taint, or add a toleration to the pod",
}


def rejected(it: Situation) -> VerdictAnswer | None:
    """Admission refused the pod; it never ran."""
    if it.status.phase != "Failed" or not it.status.message.startswith(_REJECTED):
        return None
    said = it.status.message.removeprefix(_REJECTED)
    # A static pod is refused by each agent anew: the first time is when it began.
    life = latest_life(it.record.events)
    made = next((e for e in life if isinstance(e, Decided) and e.what == REJECTED), None)
    cause = (
        _shortage(said) or _no_victims(said) or _under_pressure(said) or _misfit(it) or _system(it) or said.rstrip(".")
    )
    fallback = "lower the pod's requests, or free room on the node" if it.status.reason.startswith("OutOf") else ""
    step = _NEXT.get(it.status.reason, fallback) or "correct what the message names"
    return it.verdict(
        Rule.REJECTED,
        VerdictState.ENDED,
        f"{it} was rejected by this node: {cause} ({it.status.reason}).",
        brief=f"rejected: {cause}",
        since=moment(made.start) if made is not None else it.since,
        evidence=[("reason", it.status.reason), ("said", said)],
        next_step=f"{step}; then create the pod again: a rejected pod is not tried again",
    )


def _system(it: Situation) -> str:
    wanted = it.pod.spec.os.name if it.pod.spec.os is not None else ""
    return f"the pod is for {wanted}, the node runs linux" if it.status.reason == "PodOSNotSupported" and wanted else ""


def _misfit(it: Situation) -> str:
    for event in reversed(it.record.events):
        if isinstance(event, Decided) and event.what == MISFIT:
            return dict(event.inputs).get("because", "")
    return ""


def _shortage(said: str) -> str:
    """`2000m of cpu are asked, 500m are free (500m of 1000m are taken)`."""
    found = _SHORTAGE.search(said)
    if found is None:
        return ""
    name, asked, used, total = found["name"], int(found["asked"]), int(found["used"]), int(found["all"])
    if name == "pods":
        return f"all {total} places for pods are taken"
    free = _amount(name, max(0, total - used))
    taken = f"{_amount(name, used)} of {_amount(name, total)} are requested by other pods"
    return f"{_amount(name, asked)} of {name} are asked, {free} are free ({taken})"


def _no_victims(said: str) -> str:
    """For a critical pod, for which others would have made room."""
    found = _NO_VICTIMS.search(said)
    if found is None:
        return ""
    lacks = (
        "all places for pods are taken"
        if found["name"] == "pods"
        else (f"{_amount(found['name'], int(found['missing']))} of {found['name']} are missing")
    )
    return f"{lacks}, and no pod of lower priority could make room for this critical one"


def _under_pressure(said: str) -> str:
    """For a pod that would be evicted at once."""
    found = _PRESSURE.search(said)
    if found is None:
        return ""
    lacks = " and ".join(_LACKS.get(one.strip(), one.strip()) for one in found["which"].split(" "))
    return f"the node is under pressure: it is low on {lacks}"


def _amount(resource: str, number: int) -> str:
    if resource == "cpu":
        return f"{number}m"
    if (resource not in _BYTES and not resource.startswith("hugepages-")) or number < 1024:
        return str(number)
    return f"{number / 2**20:.1f} MiB" if number < 2**30 else f"{number / 2**30:.1f} GiB"
