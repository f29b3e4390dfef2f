"""What exactly did not fit, for the record: the messages of the API name no label, taint or port. Pure."""

from __future__ import annotations

from glasslet.admission.candidate import Candidate
from glasslet.admission.host_ports import clashes, host_ports
from glasslet.admission.taints import tolerates
from glasslet.api.node_terms import requirement_holds
from glasslet.exchange.admission import Rejected


def misfit(candidate: Candidate, refusal: Rejected) -> str:
    """The one thing that did not fit with what the node has, "" where the refusal's message says it."""
    if candidate.node is None:
        return ""
    match refusal.reason:
        case "NodeAffinity":
            return _labels(candidate)
        case "NodeName":
            return f"the pod names node {candidate.pod.spec.node_name}, this is {candidate.node.metadata.name}"
        case "NodePorts":
            return _port(candidate)
        case "TaintToleration":
            return _taint(candidate)
    return ""


def _labels(candidate: Candidate) -> str:
    assert candidate.node is not None
    spec, labels = candidate.pod.spec, candidate.node.metadata.labels
    for key, value in spec.node_selector.items():
        if labels.get(key) != value:
            return f"the pod's nodeSelector wants label {key}={value}, the node has {_has(labels, key)}"
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for one in term.match_expressions:
            if not requirement_holds(one, labels):
                wants = " ".join(part for part in (one.key, one.operator, ",".join(one.values)) if part)
                return f"the pod's affinity wants label {wants}, the node has {_has(labels, one.key)}"
    return ""


def _has(labels: dict[str, str], key: str) -> str:
    return f"{key}={labels[key]}" if key in labels else "no such label"


def _port(candidate: Candidate) -> str:
    for wanted in host_ports(candidate.pod):
        for other in candidate.others:
            if any(clashes(wanted, taken) for taken in host_ports(other)):
                meta = other.metadata
                return f"host port {wanted[2]}/{wanted[1]} is held by pod {meta.namespace}/{meta.name}"
    return ""


def _taint(candidate: Candidate) -> str:
    assert candidate.node is not None
    for taint in candidate.node.spec.taints:
        if taint.effect == "NoExecute" and not any(tolerates(one, taint) for one in candidate.pod.spec.tolerations):
            value = f"={taint.value}" if taint.value else ""
            return f"the node has taint {taint.key}{value}:{taint.effect}, which the pod does not tolerate"
    return ""
