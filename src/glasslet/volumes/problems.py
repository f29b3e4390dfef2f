"""Several problems in one text."""

from __future__ import annotations

from collections.abc import Iterable


def joined(problems: Iterable[str]) -> str:
    """One problem as it is, several in brackets, each of them once: the form that tools know from upstream."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
