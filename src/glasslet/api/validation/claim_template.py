"""The PersistentVolumeClaim template of a generic ephemeral volume."""

from __future__ import annotations

from glasslet.api.field_errors import FieldPath, forbidden, invalid, not_supported, required
from glasslet.api.formats import dns_label_problems, dns_subdomain_problems
from glasslet.api.meta import ObjectMeta
from glasslet.api.validation.metadata import annotation_errors
from glasslet.api.validation.resources import quantity_errors
from glasslet.api.validation.rules import Errors, formatted, labels, present
from glasslet.api.validation.selectors import label_selector_errors
from glasslet.api.volume import (
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    TypedLocalObjectReference,
    TypedObjectReference,
)

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")


def claim_template_errors(template: PersistentVolumeClaimTemplate, path: FieldPath) -> Errors:
    """Of the metadata only labels and annotations are taken over, so nothing else may be set."""
    meta = template.metadata
    yield from annotation_errors(meta.annotations, path.child("metadata", "annotations"))
    yield from labels(meta.labels, path.child("metadata", "labels"))
    empty = ObjectMeta()
    for name in meta.__struct_fields__:
        if name not in ("labels", "annotations") and getattr(meta, name) != getattr(empty, name):
            head, *rest = name.split("_")
            yield forbidden(path.child("metadata", head + "".join(part.title() for part in rest)), "cannot be set")
    yield from _claim(template.spec, path.child("spec"))


def _claim(spec: PersistentVolumeClaimSpec, path: FieldPath) -> Errors:
    yield from _access_modes(spec.access_modes, path.child("accessModes"))
    yield from label_selector_errors(spec.selector, path.child("selector"))
    storage = spec.resources.requests.get("storage")
    here = path.child("resources").key("storage")
    if storage is None:
        yield required(here)
    elif storage.nano_value() <= 0:
        yield invalid(here, str(storage), "must be greater than zero")
    else:
        yield from quantity_errors("storage", storage, here)
    if spec.storage_class_name:
        yield from formatted(spec.storage_class_name, path.child("storageClassName"), dns_subdomain_problems)
    if spec.volume_mode is not None and spec.volume_mode not in _VOLUME_MODES:
        yield not_supported(path.child("volumeMode"), spec.volume_mode, _VOLUME_MODES)
    yield from _sources(spec, path)
    if spec.volume_attributes_class_name:
        name = spec.volume_attributes_class_name
        yield from formatted(name, path.child("volumeAttributesClassName"), dns_subdomain_problems)


def _access_modes(modes: tuple[str, ...], path: FieldPath) -> Errors:
    if not modes:
        yield required(path, "at least 1 access mode is required")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(path, mode, _ACCESS_MODES)
    known = {mode for mode in modes if mode in _ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        yield forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _sources(spec: PersistentVolumeClaimSpec, path: FieldPath) -> Errors:
    source, reference = spec.data_source, spec.data_source_ref
    if source is not None:
        yield from _reference(source, path.child("dataSource"))
    if reference is None:
        return
    yield from _reference(reference, path.child("dataSourceRef"))
    if reference.namespace:
        yield from formatted(reference.namespace, path.child("dataSourceRef", "namespace"), dns_label_problems)
    if source is None:
        return
    if reference.namespace:
        yield invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif (source.api_group, source.kind, source.name) != (reference.api_group, reference.kind, reference.name):
        yield invalid(path, {}, "must match dataSourceRef")


def _reference(reference: TypedLocalObjectReference | TypedObjectReference, path: FieldPath) -> Errors:
    yield from present(reference.name, path.child("name"))
    yield from present(reference.kind, path.child("kind"))
    if reference.api_group:
        yield from formatted(reference.api_group, path.child("apiGroup"), dns_subdomain_problems)
    elif reference.kind != "PersistentVolumeClaim":
        yield invalid(path, reference.kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
