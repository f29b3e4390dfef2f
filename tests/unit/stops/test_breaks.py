"""Which breaks can be set, and which pods they fit."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.answers.stops import BreakRequest
from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.record.stations import Station
from glasslet.stops.breaks import BadBreak, parse_break
from glasslet.stops.places import CALLS, PLACES, first_work
from glasslet.stops.selectors import BadSelector, parse_selector

WEB = PodRef("shop", "web-7f", PodUID("u"))
LABELS = {"app": "web", "tier": "front"}


def fits(**wanted: Any) -> bool:
    return parse_break(BreakRequest(at="sandbox", **wanted)).fits(WEB, LABELS)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, True),
        ({"pod": "shop/web-*"}, True),
        ({"pod": "web-?f"}, True),
        ({"pod": "*/web-7f"}, True),
        ({"pod": "web"}, False),
        ({"pod": "default/web-7f"}, False),
        ({"namespace": "shop"}, True),
        ({"namespace": "default", "pod": "web-7f"}, False),
        ({"selector": "app=web"}, True),
        ({"selector": "app==web,tier in (front, back)"}, True),
        ({"selector": "app!=web"}, False),
        ({"selector": "canary!=yes,!canary"}, True),
        ({"selector": "tier notin (front),app"}, False),
        ({"selector": "owner notin (me)"}, True),
        ({"selector": "owner"}, False),
    ],
)
def test_a_break_fits_pods_by_name_namespace_and_labels(wanted: dict[str, str], expected: bool) -> None:
    assert fits(**wanted) is expected


def test_a_pod_whose_labels_are_unknown_fits_no_selector() -> None:
    assert not parse_break(BreakRequest(at="sandbox", selector="!canary")).fits(WEB, None)


@pytest.mark.parametrize("place", PLACES)
def test_every_station_and_call_can_be_a_place(place: str) -> None:
    kind = parse_break(BreakRequest(at=place))
    assert kind.is_at(place, after=False, container="main")
    assert not kind.is_at(place, after=True, container="main")
    assert first_work(place, after=False)


def test_every_station_is_a_place() -> None:
    assert set(Station) <= set(PLACES)
    assert f"cri:{CALLS[0]}" in PLACES


def test_a_container_of_a_break_excludes_the_work_on_others_and_on_the_pod() -> None:
    kind = parse_break(BreakRequest(at="created", container="main"))
    assert [kind.is_at("created", after=False, container=name) for name in ("main", "side", "")] == [True, False, False]


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"at": "sandbx"}, "at"),
        ({"at": "cri:ListContainers"}, "at"),
        ({"at": "plan", "after": True}, "after"),
        ({"at": "sandbox", "hold_seconds": 0}, "holdSeconds"),
        ({"at": "sandbox", "hold_seconds": 1e9}, "holdSeconds"),
        ({"at": "sandbox", "hold_seconds": float("nan")}, "holdSeconds"),
        ({"at": "sandbox", "count": -1}, "count"),
        ({"at": "sandbox", "pod": "a/b/c"}, "pod"),
        ({"at": "sandbox", "pod": "web-[0-9]"}, "pod"),
        ({"at": "sandbox", "pod": "x" * 2000}, "pod"),
        ({"at": "sandbox", "container": "a\nb"}, "container"),
        ({"at": "sandbox", "selector": "app in web"}, "selector"),
        ({"at": "sandbox", "when": "true || " * 200 + "true"}, "when"),
    ],
)
def test_a_break_that_cannot_be_set_is_refused_with_field_and_what_is_allowed(
    wanted: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadBreak) as caught:
        parse_break(BreakRequest(**wanted))
    answer = caught.value.answer
    assert answer.field == field
    assert answer.allowed


def test_a_misspelled_place_gets_the_nearest() -> None:
    with pytest.raises(BadBreak) as caught:
        parse_break(BreakRequest(at="sandbx"))
    assert caught.value.answer.nearest[0] == "sandbox"


@pytest.mark.parametrize("text", ["app=we b", "=web", "a=b=c", "app in ()()", "-x=1", "app>1"])
def test_a_text_that_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(BadSelector):
        parse_selector(text)
