"""The decoders of outside bytes, by where the bytes come from."""

from __future__ import annotations

from tests.fuzz.engine import Target
from tests.fuzz.targets import kernel, objects, runtime, state, wire, written


def all_targets() -> list[Target]:
    """Every target, in a fixed order."""
    rooms = (objects, written, runtime, state, kernel, wire)
    return [target for room in rooms for target in room.targets()]
