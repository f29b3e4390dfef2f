"""Breaks, holds, steps and parts of the tree as the commands show them."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest

from glasslet.answers.pods import Hold, TimelineRow
from glasslet.answers.states import EventKind
from glasslet.answers.stops import BreakRow, ReleasedAnswer, StepAnswer
from glasslet.cli.failure import Failure
from glasslet.cli.stops.break_command import command, seconds
from glasslet.cli.stops.holds_text import break_line, breaks_table, hold_line, released_text, step_text
from glasslet.cli.stops.inspect_command import part_of
from tests.builders.observed import START

HOLD = Hold(
    at="created", by=2, since=START, until=START + timedelta(minutes=10), container="main", next="CreateContainer"
)
TREE = {"plan": {"actions": [{"action": "CreateSandbox"}]}, "pod": {"labels": {"a.b/c": "x"}}, "attempt": 0}


def test_a_break_is_one_line() -> None:
    row = BreakRow(number=1, at="sandbox", pod="shop/web-*", set_at=START, matching=2, hold_seconds=120.0, count=3)
    assert break_line(row) == (
        "break 1: at sandbox, before, for shop/web-*; each hold lasts 2 min at most; holds 3 times; "
        "fits 2 of the pods that are here"
    )


def test_the_table_of_breaks_has_who_is_held_and_what_is_wrong() -> None:
    row = BreakRow(
        number=3,
        at="created",
        after=True,
        selector="app=web",
        container="main",
        when="attempt > 1",
        set_at=START,
        hits=1,
        count=2,
        holding=("shop/web-7f",),
        problem="no such member",
    )
    (_, line) = breaks_table([row]).splitlines()
    for part in (
        "after created",
        "all pods with app=web container main",
        "attempt > 1",
        "1/2",
        "shop/web-7f",
        "no such",
    ):
        assert part in line
    assert breaks_table([]) == "no breaks"


def test_a_hold_is_one_line_with_what_comes_then() -> None:
    said = hold_line("shop/web-7f", HOLD, START + timedelta(seconds=42))
    assert said.startswith("shop/web-7f is held at created of main by break 2 for 42 s, until ")
    assert said.endswith("; then: CreateContainer")


def test_a_step_shows_the_way_and_where_the_pod_is_then() -> None:
    row = TimelineRow(at=START, kind=EventKind.STATION, text="sandbox: attempt 0", took_ms=250.0, outcome="failed")
    said = step_text(StepAnswer(namespace="shop", name="web", hold=HOLD, passed=(row,)), START).splitlines()
    assert said[0].endswith("sandbox: attempt 0  250 ms  failed")
    assert said[1].startswith("shop/web is held at created")
    free = step_text(StepAnswer(namespace="shop", name="web"), START)
    assert free.startswith("shop/web is not held now")


def test_what_goes_on_is_listed() -> None:
    answer = ReleasedAnswer(released=("shop/web",), removed=(1, 2))
    assert released_text(answer, nothing="-") == "removed break 1\nremoved break 2\nshop/web goes on"
    assert released_text(ReleasedAnswer(), nothing="no pod is held") == "no pod is held"


@pytest.mark.parametrize(("text", "expected"), [("90", 90.0), ("90s", 90.0), ("2m", 120.0), ("1h30m", 5400.0)])
def test_durations_are_as_people_write_them(text: str, expected: float) -> None:
    assert seconds(click.Context(command), command.params[0], text) == expected


@pytest.mark.parametrize("text", ["", "soon", "2 m", "-1"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(click.BadParameter, match="no duration"):
        seconds(click.Context(command), command.params[0], text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", TREE),
        (".", TREE),
        (".plan.actions[0].action", "CreateSandbox"),
        ("plan.actions[0]", {"action": "CreateSandbox"}),
        ('.pod.labels["a.b/c"]', "x"),
        (".attempt", 0),
    ],
)
def test_a_part_of_the_tree_is_found_by_its_path(path: str, expected: object) -> None:
    assert part_of(TREE, path) == expected


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (".plan.nope", "has no field nope; it has actions"),
        (".plan.actions[3]", "has 1 elements, none at 3"),
        (".attempt.x", "is int"),
        (".plan..x", "cannot be read from column 6 on"),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(path: str, says: str) -> None:
    with pytest.raises(Failure, match=says.replace(".", "\\.")):
        part_of(TREE, path)
