"""docs/limits.md has the values of the code."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
ROW = re.compile(r"^\| (.*?) \| (.*?) \| (.*?) \| (.*?) \| `([\w/]+)\.py` `([\w.\[\]-]+)` \|$", re.MULTILINE)
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "s": 1, "min": 60, "h": 3600, "d": 86400}


class Limit(NamedTuple):
    """A row of the page."""

    what: str
    value: str
    module: str
    name: str


LIMITS = [Limit(what, value, module, name) for what, value, _, _, module, name in ROW.findall(PAGE.read_text())]


def in_code(limit: Limit) -> Any:
    """The constant; of a class the default of the field; `[key]` is an entry of a table."""
    found: Any = importlib.import_module(f"glasslet.{limit.module.replace('/', '.')}")
    for part in limit.name.split("."):
        name, _, key = part.partition("[")
        found = getattr(found() if isinstance(found, type) else found, name)
        if key:
            found = next(value for known, value in found.items() if str(known) == key.removesuffix("]"))
    return found


def on_page(limit: Limit) -> float:
    number, _, unit = limit.value.partition(" ")
    return float(number) * UNITS[unit]


def test_every_row_of_the_page_is_understood() -> None:
    rows = [
        line
        for line in PAGE.read_text().splitlines()
        if line.startswith("| ") and not line.startswith(("| what", "| ---"))
    ]
    assert len(LIMITS) == len(rows)
    assert len(LIMITS) > 80


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.module}.{limit.name}")
def test_a_limit_is_that_of_the_code(limit: Limit) -> None:
    assert on_page(limit) == in_code(limit)
