"""`$(NAME)` in environment variables, commands, arguments and subPathExpr, and how long their texts may become. Pure.

References may double a text again and again, so lengths are counted before a text is built. The limits are those of
Linux: a container beyond them could not be started (execve: E2BIG, "argument list too long").
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from glasslet.podspec.errors import container_error

MAX_TEXT = 32 * mmap.PAGESIZE - 1
"""Bytes of one argument or `NAME=value` (MAX_ARG_STRLEN without the byte that ends it)."""
MAX_TOTAL = 6 * 1024 * 1024
"""Bytes of all of them: three quarters of 8 MiB, however large the stack may be (fs/exec.c). With the usual stack limit
the kernel takes 2 MiB; that limit is the container's, so the runtime reports it."""
COST = 9
"""Bytes that a text costs beyond its own: the byte that ends it, and a pointer."""
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_DOLLARS = re.compile(r"\$\$")


class TooLong(Exception):
    """No process could be started with the text; the message says why, after the name of the field."""


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replaces `$(NAME)`; `$$` gives `$`; a name that is not defined stays as written. Raises TooLong."""
    return _replace(text, values.get) if "$" in text else checked(text)


def expand_all(texts: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """`expand` for a command or its arguments. Raises TooLong."""
    expanded: list[str] = []
    total = 0
    for number, text in enumerate(texts):
        try:
            expanded.append(expand(text, values))
        except TooLong as error:
            raise TooLong(f"[{number}]{error}") from None
        total += len(expanded[-1]) + COST
        if total > MAX_TOTAL:
            raise too_many()
    return tuple(expanded)


def expand_strictly(text: str, values: Mapping[str, str]) -> str:
    """`expand`, but a name that is not defined or empty is a ConfigError: subPathExpr must never fall back to the whole
    volume."""
    missing: set[str] = set()

    def lookup(name: str) -> str:
        value = values.get(name, "")
        if not value:
            missing.add(name)
        return value

    try:
        expanded = _replace(text, lookup)
    except TooLong as error:
        raise container_error(f"subPathExpr{error}") from None
    if missing:
        raise container_error(f"missing value for {', '.join(sorted(missing))}")
    return expanded


def checked(text: str, beside: int = 0) -> str:
    """The text, if it and so many further bytes fit into one argument. Raises TooLong."""
    # A character takes four bytes at most; only texts near the limit are measured.
    if len(text) * 4 + beside > MAX_TEXT and size(text) + beside > MAX_TEXT:
        raise _too_long()
    return text


def size(text: str) -> int:
    """Bytes of the text."""
    return len(text) if text.isascii() else len(text.encode())


def too_many() -> TooLong:
    """The error of texts that are too long together."""
    return TooLong(f": more than {MAX_TOTAL} bytes together, the most that a process can be started with")


def _too_long() -> TooLong:
    return TooLong(f": more than {MAX_TEXT} bytes, the most that a process can be started with")


def _replace(text: str, lookup: Callable[[str], str | None]) -> str:
    pieces: list[str] = []
    length = at = 0
    # No reference ends behind the last `)`. Each `$(` there would be followed to the end of the text.
    last = text.rfind(")") + 1
    for match in chain(_REFERENCE.finditer(text, 0, last), _DOLLARS.finditer(text, last)):
        value = "$" if match[0] == "$$" else lookup(match[1])
        for piece in (text[at : match.start()], match[0] if value is None else value):
            pieces.append(piece)
            length += len(piece)
        if length > MAX_TEXT:
            raise _too_long()
        at = match.end()
    pieces.append(text[at:])
    if length + len(text) - at > MAX_TEXT:
        raise _too_long()
    return checked("".join(pieces))
