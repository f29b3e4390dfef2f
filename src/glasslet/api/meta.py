"""Object metadata of every API object (meta/v1 at v1.34)."""

from __future__ import annotations

from typing import Any

from glasslet.api.object import Object
from glasslet.api.times import Time


class ManagedFieldsEntry(Object, frozen=True, kw_only=True):
    """`meta/v1.ManagedFieldsEntry`."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    fields_v1: dict[str, Any] = {}
    subresource: str = ""


class OwnerReference(Object, frozen=True, kw_only=True):
    """`meta/v1.OwnerReference`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Object, frozen=True, kw_only=True):
    """`meta/v1.ObjectMeta`."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()


class LabelSelectorRequirement(Object, frozen=True, kw_only=True):
    """`meta/v1.LabelSelectorRequirement`."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Object, frozen=True, kw_only=True):
    """`meta/v1.LabelSelector`."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ListMeta(Object, frozen=True, kw_only=True):
    """`meta/v1.ListMeta`."""

    self_link: str = ""
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None
