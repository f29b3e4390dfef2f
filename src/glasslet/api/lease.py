"""Node leases (coordination/v1 Lease at v1.34)."""

from __future__ import annotations

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object


class LeaseSpec(Object, frozen=True, kw_only=True):
    """`coordination/v1.LeaseSpec`. Times are MicroTime text, which the common time encoding would cut."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Object, frozen=True, kw_only=True):
    """`coordination/v1.Lease`."""

    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
