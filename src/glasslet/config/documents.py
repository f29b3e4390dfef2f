"""YAML and JSON from files that nobody vouches for: plain data with the line of every value.

Bounded in size, depth and alias expansion; duplicate keys, cycles and values that JSON cannot hold are errors.
Errors name keys, never values: a manifest may hold secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from glasslet.config.files import MAX_BYTES, FileProblem, read_regular_file

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


@dataclass(slots=True, eq=False)
class Spot:
    """Where a value stands: its line (from 1) and the spots of what is inside it, by key or index."""

    line: int
    inside: dict[str | int, Spot] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Document:
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


def load_documents(
    data: bytes, *, origin: str, max_bytes: int = MAX_BYTES, tolerate_duplicates: bool = False
) -> list[Document]:
    """All documents of a YAML or JSON file; empty ones are left out. `origin` names the file in errors.

    Raises DocumentError and nothing else, whatever the bytes are.
    """
    if len(data) > max_bytes:
        raise DocumentError(origin, 0, f"is larger than {max_bytes} bytes")
    text = _decode(data, origin)
    if text.lstrip()[:1] in ("{", "["):
        documents = _load_json(text, origin, tolerate_duplicates)
        if documents is not None:
            return documents
    return _yaml_documents(text, origin, tolerate_duplicates)


def load_file(path: str, *, max_bytes: int = MAX_BYTES, tolerate_duplicates: bool = False) -> list[Document]:
    """As `load_documents`, from a regular file; pipes, folders and link loops are DocumentErrors too."""
    try:
        data = read_regular_file(path, limit=max_bytes)
    except FileProblem as problem:
        raise DocumentError(path, 0, problem.reason) from problem
    return load_documents(data, origin=path, max_bytes=max_bytes, tolerate_duplicates=tolerate_duplicates)


def _decode(data: bytes, origin: str) -> str:
    zero = data.find(b"\0")
    if zero >= 0:
        raise DocumentError(origin, data.count(b"\n", 0, zero) + 1, "is binary, want YAML or JSON text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(origin, line, "is not UTF-8 text") from None


def _yaml_documents(text: str, origin: str, tolerate_duplicates: bool) -> list[Document]:
    # PyYAML costs a quarter of the agent's import time and is needed only while files are read.
    from glasslet.config import yaml_events

    return yaml_events.build(text, origin, tolerate_duplicates)


class _NotPlainJson(Exception):
    """JSON that repeats a key: the YAML reader says where."""


class _NotFiniteJson(Exception):
    """NaN or Infinity, which only JavaScript knows."""


def _load_json(text: str, origin: str, tolerate_duplicates: bool) -> list[Document] | None:
    """The one document of a JSON file; None when the text is a YAML flow collection instead."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise DocumentError(origin, 0, f"is nested deeper than {MAX_DEPTH} levels") from None
    except _NotFiniteJson:
        raise DocumentError(origin, 0, "NaN and infinity are not allowed") from None
    except _NotPlainJson:
        value = None
    except ValueError as error:
        try:
            return _yaml_documents(text, origin, tolerate_duplicates)
        except DocumentError as other:
            if isinstance(error, json.JSONDecodeError) and other.message.startswith("invalid YAML"):
                raise DocumentError(origin, error.lineno, f"invalid JSON: {error.msg}") from None
            raise
    if value is None:
        return None
    _check_json(value, origin)
    if "\\u" in text:
        _refuse_lone_surrogates(value, origin)

    @cache
    def locate() -> Spot:
        # The same text is YAML once tabs are blanks; lines are wanted seldom, so this second reading waits for it.
        try:
            return _yaml_documents(text.replace("\t", " "), origin, tolerate_duplicates)[0].locate()
        except DocumentError:
            return Spot(1)

    return [Document(value, origin, locate)]


def _refuse_lone_surrogates(value: Any, origin: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DocumentError(origin, 0, "holds half a surrogate pair, which is no character") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _NotPlainJson
    return made


def _refuse_constant(_name: str) -> None:
    raise _NotFiniteJson


def _check_json(value: Any, origin: str) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH + 1:
            raise DocumentError(origin, 0, f"is nested deeper than {MAX_DEPTH} levels")
        following: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                following.extend(item.values())
            elif isinstance(item, list):
                following.extend(item)
            elif isinstance(item, float) and item in (float("inf"), float("-inf")):
                raise DocumentError(origin, 0, "the number is out of range")
        level = following
