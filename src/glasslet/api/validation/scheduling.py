"""Placement of a pod: affinity, tolerations, topology spread."""

from __future__ import annotations

from glasslet.api.field_errors import FieldPath, duplicate, forbidden, invalid, not_supported, required
from glasslet.api.formats import dns_label_problems, dns_subdomain_problems, label_value_problems
from glasslet.api.formats import qualified_name_problems as qualified
from glasslet.api.meta import LabelSelector
from glasslet.api.scheduling import (
    Affinity,
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)
from glasslet.api.validation.rules import Errors, formatted, int32, positive
from glasslet.api.validation.selectors import label_selector_errors, operator_errors, value_errors

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION = ("Honor", "Ignore")
_BAD_OPERATOR = "not a valid selector operator"
_WITHOUT_SELECTOR = "must not be specified when labelSelector is not set"


def affinity_errors(affinity: Affinity | None, path: FieldPath) -> Errors:
    """Node affinity, and (anti-)affinity to other pods."""
    if affinity is None:
        return
    if affinity.node_affinity is not None:
        yield from _node_affinity(affinity.node_affinity, path.child("nodeAffinity"))
    for name, group in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if group is None:
            continue
        for number, term in enumerate(group.required_during_scheduling_ignored_during_execution):
            yield from _pod_term(term, path.child(name, _REQUIRED).at(number))
        for number, weighted in enumerate(group.preferred_during_scheduling_ignored_during_execution):
            here = path.child(name, _PREFERRED).at(number)
            yield from _weight(weighted.weight, here)
            yield from _pod_term(weighted.pod_affinity_term, here.child("podAffinityTerm"))


def toleration_errors(tolerations: tuple[Toleration, ...], path: FieldPath) -> Errors:
    """`spec.tolerations`."""
    for number, toleration in enumerate(tolerations):
        here = path.at(number)
        operator = here.child("operator")
        if toleration.key:
            yield from formatted(toleration.key, here.child("key"), qualified)
        elif toleration.operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(operator, toleration.operator, text)
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(here.child("effect"), toleration.effect, text)
        if toleration.operator in ("", "Equal"):
            problems = label_value_problems(toleration.value)
            if problems:
                yield invalid(operator, toleration.value, ";".join(problems))
        elif toleration.operator == "Exists":
            if toleration.value:
                yield invalid(operator, toleration.value, "value must be empty when `operator` is 'Exists'")
        else:
            yield not_supported(operator, toleration.operator, ("Equal", "Exists"))
        if toleration.effect and toleration.effect not in _EFFECTS:
            yield not_supported(here.child("effect"), toleration.effect, _EFFECTS)


def spread_errors(constraints: tuple[TopologySpreadConstraint, ...], path: FieldPath) -> Errors:
    """`spec.topologySpreadConstraints`."""
    for number, constraint in enumerate(constraints):
        here, action = path.at(number), constraint.when_unsatisfiable
        yield from positive(constraint.max_skew, here.child("maxSkew"))
        yield from int32(constraint.max_skew, here.child("maxSkew"))
        if not constraint.topology_key:
            yield required(here.child("topologyKey"), "can not be empty")
        if action not in _UNSATISFIABLE:
            yield not_supported(here.child("whenUnsatisfiable"), action, _UNSATISFIABLE)
        key = (constraint.topology_key, action)
        if any((other.topology_key, other.when_unsatisfiable) == key for other in constraints[number + 1 :]):
            yield duplicate(here.child("{topologyKey, whenUnsatisfiable}"), f"{{{key[0]}, {key[1]}}}")
        domains = constraint.min_domains
        if domains is not None:
            yield from positive(domains, here.child("minDomains"))
            yield from int32(domains, here.child("minDomains"))
            if action != "DoNotSchedule":
                text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                yield invalid(here.child("minDomains"), domains, text)
        for name, policy in (
            ("nodeAffinityPolicy", constraint.node_affinity_policy),
            ("nodeTaintsPolicy", constraint.node_taints_policy),
        ):
            if policy is not None and policy not in _INCLUSION:
                yield not_supported(here.child(name), policy, _INCLUSION)
        yield from _spread_label_keys(constraint, here.child("matchLabelKeys"))
        yield from label_selector_errors(constraint.label_selector, here.child("labelSelector"))


def _node_affinity(affinity: NodeAffinity, path: FieldPath) -> Errors:
    needed = affinity.required_during_scheduling_ignored_during_execution
    if needed is not None:
        here = path.child(_REQUIRED, "nodeSelectorTerms")
        if not needed.node_selector_terms:
            yield required(here, "must have at least one node selector term")
        for number, term in enumerate(needed.node_selector_terms):
            yield from _node_term(term, here.at(number), check_values=True)
    for number, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        here = path.child(_PREFERRED).at(number)
        yield from _weight(preferred.weight, here)
        yield from _node_term(preferred.preference, here.child("preference"), check_values=False)


def _node_term(term: NodeSelectorTerm, path: FieldPath, *, check_values: bool) -> Errors:
    for number, expression in enumerate(term.match_expressions):
        here = path.child("matchExpressions").at(number)
        if expression.operator in ("Gt", "Lt"):
            if len(expression.values) != 1:
                text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(here.child("values"), text)
        else:
            yield from operator_errors(expression.operator, expression.values, here)
        yield from formatted(expression.key, here.child("key"), qualified)
        if check_values:
            yield from value_errors(expression.values, here)
    for number, field in enumerate(term.match_fields):
        yield from _node_field(field, path.child("matchFields").at(number))


def _node_field(field: NodeSelectorRequirement, path: FieldPath) -> Errors:
    if field.operator not in ("In", "NotIn"):
        yield invalid(path.child("operator"), field.operator, _BAD_OPERATOR)
    elif len(field.values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(path.child("values"), text)
    if field.key != "metadata.name":
        yield invalid(path.child("key"), field.key, "not a valid field selector key")
        return
    for number, value in enumerate(field.values):
        yield from formatted(value, path.child("values").at(number), dns_subdomain_problems)


def _weight(weight: int, path: FieldPath) -> Errors:
    if not 0 < weight <= 100:
        yield invalid(path.child("weight"), weight, "must be in the range 1-100")


def _pod_term(term: PodAffinityTerm, path: FieldPath) -> Errors:
    yield from label_selector_errors(term.label_selector, path.child("labelSelector"))
    yield from label_selector_errors(term.namespace_selector, path.child("namespaceSelector"))
    for namespace in term.namespaces:
        yield from formatted(namespace, path.child("namespace"), dns_label_problems)
    for name, keys in (("matchLabelKeys", term.match_label_keys), ("mismatchLabelKeys", term.mismatch_label_keys)):
        if keys and term.label_selector is None:
            yield forbidden(path.child(name), _WITHOUT_SELECTOR)
        elif keys:
            for number, key in enumerate(keys):
                yield from formatted(key, path.child(name).at(number), qualified)
    yield from _repeated_keys(term, path)
    if not term.topology_key:
        yield required(path.child("topologyKey"), "can not be empty")
    yield from formatted(term.topology_key, path.child("topologyKey"), qualified)


def _repeated_keys(term: PodAffinityTerm, path: FieldPath) -> Errors:
    seen = set(term.label_selector.match_labels) if term.label_selector else set()
    for expression in term.label_selector.match_expressions if term.label_selector else ():
        if expression.key in seen and expression.key in term.match_label_keys:
            number = len(term.match_label_keys) - 1 - term.match_label_keys[::-1].index(expression.key)
            yield invalid(path.at(number), expression.key, "exists in both matchLabelKeys and labelSelector")
        seen.add(expression.key)
    for number, key in enumerate(term.match_label_keys):
        if key in term.mismatch_label_keys:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(path.child("matchLabelKeys").at(number), key, text)


def _spread_label_keys(constraint: TopologySpreadConstraint, path: FieldPath) -> Errors:
    selector = constraint.label_selector
    if constraint.match_label_keys and selector is None:
        yield forbidden(path, _WITHOUT_SELECTOR)
    selected = _selected_keys(selector)
    for number, key in enumerate(constraint.match_label_keys):
        yield from formatted(key, path.at(number), qualified)
        if key in selected:
            yield invalid(path.at(number), key, "exists in both matchLabelKeys and labelSelector")


def _selected_keys(selector: LabelSelector | None) -> set[str]:
    if selector is None:
        return set()
    return {*selector.match_labels, *(expression.key for expression in selector.match_expressions)}
