"""The agent's own source files, to be shown beside its calls. No other file is read."""

from __future__ import annotations

import os

from glasslet.answers.calls import SourceAnswer
from glasslet.calls.log import PACKAGE

LARGEST = 1 << 20
"""Bytes of a file."""


def package_source(file: str) -> SourceAnswer | None:
    """The file, by its path from `glasslet/` on, as it is on disk; None if the package has no such file."""
    parts = file.split("/")
    if parts[0] != "glasslet" or not file.endswith(".py") or "\0" in file or {"", ".", ".."} & set(parts):
        return None
    path = os.path.join(PACKAGE, *parts[1:])
    if os.path.realpath(path) != os.path.join(os.path.realpath(PACKAGE), *parts[1:]):
        return None
    try:
        with open(path, "rb") as source:
            text = source.read(LARGEST + 1)
    except OSError:
        return None
    return SourceAnswer(file=file, text=text[:LARGEST].decode(errors="replace"))
