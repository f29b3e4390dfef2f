"""YAML and JSON from untrusted files: plain data with the line of every value.

Bounded in size, depth and alias expansion; duplicate keys, cycles and values that JSON cannot hold are errors.
Errors name keys, never values: a manifest may hold secrets.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from glasslet.config.document import MAX_DEPTH, Document, DocumentError, Spot
from glasslet.config.files import MAX_BYTES, FileProblem, read_regular_file


def load_documents(
    data: bytes, *, origin: str, max_bytes: int = MAX_BYTES, tolerate_duplicates: bool = False
) -> list[Document]:
    """All documents of a YAML or JSON file; empty ones are left out. `origin` names the file in errors.

    Raises only DocumentError, for all bytes.
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
