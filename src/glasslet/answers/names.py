"""What may have been meant by a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(typed: str, names: Iterable[str]) -> tuple[str, ...]:
    """Up to three of `names` (`namespace/name`) that look like `typed`, with or without its namespace."""
    known = {name.rpartition("/")[2]: name for name in names} | {name: name for name in names}
    near = difflib.get_close_matches(typed, known, n=3, cutoff=0.5)
    return tuple(dict.fromkeys(known[name] for name in near))
