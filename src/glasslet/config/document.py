"""One document of a file: plain data, where each value stands, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

MAX_DEPTH = 100
"""Deepest nesting; the deepest Kubernetes object needs about twenty levels."""
MAX_ALIASED = 10_000
"""How many nodes all aliases of a file may stand for together."""

MAX_EVENTS = 300_000
"""Bounds the time for one file: about a second; a thousand pods need fewer."""

Path = Sequence[str | int]
_STEP = re.compile(r"\[(\d+)\]|\[?\"([^\"]*)\"\]?|([^.\[\]]+)")


class DocumentError(Exception):
    """A document that cannot be used. `line` counts from 1; 0 means the file as a whole."""

    def __init__(self, origin: str, line: int, message: str) -> None:
        # A key or tag may be as long as the file.
        message = message if len(message) <= 500 else message[:500] + "…"
        super().__init__(f"{origin}:{line}: {message}" if line else f"{origin}: {message}")
        self.origin = origin
        self.line = line
        self.message = message


class Spot(Struct, eq=False):
    """Where a value stands: its line (from 1) and the spots of what is inside it, by key or index."""

    line: int
    inside: dict[str | int, Spot] = field(default_factory=dict)


class Document(Struct, frozen=True, eq=False):
    """One document: plain data (`None bool int float str list dict`, keys always str) and its positions.

    `duplicates` holds (path, line) of repeated keys where the caller asked to tolerate them; the last value counts.
    """

    value: Any
    origin: str
    locate: Callable[[], Spot]
    duplicates: tuple[tuple[str, int], ...] = ()

    def line_of(self, path: Path | str) -> int:
        """The line (from 1) of the value at `path`, or of its nearest ancestor that exists.

        `path` is a sequence of keys and indexes, or text such as `spec.containers[0].name` (a leading `$` is ignored).
        """
        spot = self.locate()
        for step in parse_path(path) if isinstance(path, str) else path:
            found = spot.inside.get(step)
            if found is None:
                break
            spot = found
        return spot.line


def parse_path(text: str) -> list[str | int]:
    """`$.spec.containers[0].name` as steps. A key that holds dots is written `["a.b"]`."""
    return [
        int(index) if index else quoted or plain
        for index, quoted, plain in _STEP.findall(text.removeprefix("$").removeprefix("."))
    ]


def format_path(path: Path) -> str:
    """Steps as text: `spec.containers[0].name`; keys that hold dots or brackets as `["a.b"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif any(mark in step for mark in ".[]\"'"):
            text += f'["{step}"]'
        else:
            text += f".{step}" if text else step
    return text
