"""Events as node agents write them (core/v1 Event at v1.34)."""

from __future__ import annotations

from msgspec import field

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object
from glasslet.api.times import Time


class ObjectReference(Object, frozen=True, kw_only=True):
    """`core/v1.ObjectReference`."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Object, frozen=True, kw_only=True):
    """`core/v1.EventSource`."""

    component: str = ""
    host: str = ""


class Event(Object, frozen=True, kw_only=True):
    """`core/v1.Event`."""

    api_version: str = "v1"
    kind: str = "Event"
    metadata: ObjectMeta = ObjectMeta()
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    count: int = 0
    type: str = ""
    action: str = ""
    reporting_component: str = field(default="", name="reportingComponent")
    reporting_instance: str = field(default="", name="reportingInstance")
