"""Every reason of the Go kubelet's events is sent, or is on the list of those that are not, with why."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import yaml

import glasslet
from glasslet.node.status.conditions import _PRESSURES

DATA = Path(__file__).parents[1] / "data"
ABSENT: dict[str, list[str]] = yaml.safe_load((DATA / "absent_events.yaml").read_text())
BUILT = {f"NodeHas{words[0]}" for states in _PRESSURES.values() for words in states.values()}
"""Reasons that are put together from parts."""


def theirs() -> set[str]:
    """The first column of the table of events."""
    page = (DATA / "upstream" / "events-and-reasons.md").read_text()
    table = page.partition("## Events\n")[2].partition("\n## ")[0]
    return {one for one in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE) if not one.startswith("<")}


@cache
def texts() -> frozenset[str]:
    """Every text in the code, docstrings left out."""
    found: set[str] = set()
    for path in Path(glasslet.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        plain = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        found |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in plain
        }
    return frozenset(found)


def absent() -> set[str]:
    return {reason for reasons in ABSENT.values() for reason in reasons}


def test_the_table_of_upstream_is_read() -> None:
    assert {"Pulling", "NodeHasDiskPressure", "CgroupV1"} <= theirs()
    assert len(theirs()) > 60


def test_reasons_that_are_not_in_the_code_are_on_the_list() -> None:
    assert theirs() - texts() - BUILT - absent() == set()


def test_reasons_on_the_list_are_upstreams_and_not_in_the_code() -> None:
    assert absent() <= theirs()
    assert absent() & texts() == set()
