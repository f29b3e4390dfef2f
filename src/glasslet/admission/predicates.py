"""The scheduler's predicates, checked again on the node; and preemption where only resources are missing."""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.admission.candidate import Candidate, Rule
from glasslet.admission.host_ports import host_ports_rule
from glasslet.admission.node_name import node_name_rule
from glasslet.admission.node_selection import node_selection_rule
from glasslet.admission.operating_system import operating_system_rule
from glasslet.admission.preemption import NoVictims, choose_victims
from glasslet.admission.resources import Shortage, shortages
from glasslet.admission.supplemental_groups import supplemental_groups_rule
from glasslet.admission.taints import taints_rule
from glasslet.api.object import PodUID
from glasslet.exchange.admission import Admitted, Rejected
from glasslet.podspec.qos import is_critical

_FIRST: tuple[Rule, ...] = (operating_system_rule, supplemental_groups_rule)
_AFTER_RESOURCES: tuple[Rule, ...] = (node_selection_rule, node_name_rule, host_ports_rule, taints_rule)


def predicates(candidate: Candidate) -> Admitted | Rejected:
    """The first refusal. Missing resources refuse a critical pod only if no pods can be preempted for it."""
    if candidate.node is None:
        return Rejected(reason="InvalidNodeInfo", message="Kubelet cannot get node info.")
    for refusal in _refusals(_FIRST, candidate):
        return refusal
    short = shortages(candidate)
    if not short or is_critical(candidate.pod):
        for refusal in _refusals(_AFTER_RESOURCES, candidate):
            return refusal
    if not short:
        return Admitted()
    return _preempt(candidate, short) if is_critical(candidate.pod) else short[0].rejection()


def _preempt(candidate: Candidate, short: tuple[Shortage, ...]) -> Admitted | Rejected:
    victims = choose_victims(candidate.pod, candidate.others, {one.resource: one.missing for one in short})
    if isinstance(victims, NoVictims):
        why = f"preemption: error finding a set of pods to preempt: {victims}"
        message = f"Unexpected error while attempting to recover from admission failure: {why}"
        return Rejected(reason="UnexpectedAdmissionError", message=message)
    uids = tuple(PodUID(pod.metadata.uid) for pod in victims)
    return Admitted(victims=uids, shortage=short[0].resource)


def _refusals(rules: tuple[Rule, ...], candidate: Candidate) -> Iterator[Rejected]:
    return (refusal for rule in rules if (refusal := rule(candidate)) is not None)
