"""Metadata of a pod: name, namespace, labels, annotations, owners, finalizers."""

from __future__ import annotations

import re

from glasslet.api.field_errors import FieldPath, invalid, required, too_long
from glasslet.api.formats import MAX_INT32, dns_label_problems, dns_subdomain_problems, name_prefix_problems
from glasslet.api.formats import qualified_name_problems as qualified
from glasslet.api.meta import ObjectMeta, OwnerReference
from glasslet.api.validation.rules import Errors, formatted, labels, named, not_negative

MAX_ANNOTATIONS = 256 * 1024
"""Bytes of all keys and values together."""
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def metadata_errors(meta: ObjectMeta, path: FieldPath) -> Errors:
    """Everything about `metadata` that does not depend on the spec."""
    yield from (
        formatted(meta.generate_name, path.child("generateName"), name_prefix_problems) if meta.generate_name else ()
    )
    if not meta.name:
        yield required(path.child("name"), "name or generateName is required")
    else:
        yield from formatted(meta.name, path.child("name"), dns_subdomain_problems)
    yield from named(meta.namespace, path.child("namespace"), dns_label_problems)
    yield from not_negative(meta.generation, path.child("generation"))
    yield from labels(meta.labels, path.child("labels"))
    yield from annotation_errors(meta.annotations, path.child("annotations"))
    yield from _owners(meta.owner_references, path.child("ownerReferences"))
    yield from _finalizers(meta.finalizers, path.child("finalizers"))
    cost = meta.annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        yield invalid(path.child("annotations").key(_DELETION_COST), cost, "must be a 32bit integer")


def annotation_errors(annotations: dict[str, str], path: FieldPath) -> Errors:
    """Annotation keys, and the size of all together."""
    for key in annotations:
        for problem in qualified(key.lower()):
            yield invalid(path, key, problem)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        yield too_long(path, MAX_ANNOTATIONS)


def _owners(owners: tuple[OwnerReference, ...], path: FieldPath) -> Errors:
    for owner in owners:
        if owner.api_version.count("/") > 1 or not owner.api_version.rpartition("/")[2]:
            yield invalid(path.child("apiVersion"), owner.api_version, "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not getattr(owner, name):
                yield invalid(path.child(name), "", "must not be empty")
        if (owner.api_version, owner.kind) == ("v1", "Event"):
            yield invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
    controllers = [f"{owner.kind}/{owner.name}" for owner in owners if owner.controller]
    for other in controllers[1:]:
        yield invalid(
            path,
            owners,
            "Only one reference can have Controller set to true."
            f' Found "true" in references for {controllers[0]} and {other}',
        )


def _finalizers(finalizers: tuple[str, ...], path: FieldPath) -> Errors:
    for finalizer in finalizers:
        yield from formatted(finalizer, path, qualified)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        yield invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")
    for number, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            yield invalid(
                path.at(number), finalizer, "name is neither a standard finalizer name nor is it fully qualified"
            )


def _is_int32(text: str) -> bool:
    return (
        bool(re.fullmatch("-[0-9]+|0|[1-9][0-9]*", text))
        and len(text) < 12
        and -MAX_INT32 - 1 <= int(text) <= MAX_INT32
    )
