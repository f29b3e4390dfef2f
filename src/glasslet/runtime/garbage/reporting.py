"""Where collections are reported: the record, the node's events, and the clock of both."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from glasslet.concurrency.clock import Clock
from glasslet.record.recorder import Recorder


def _no_events(type_: str, reason: str, message: str) -> None:
    """For agents without events."""


class CollectionReporting(Struct, frozen=True, kw_only=True):
    """Passed to every collector. `events` takes those of the node: type, reason, message."""

    recorder: Recorder
    clock: Clock
    events: Callable[[str, str, str], None] = _no_events
