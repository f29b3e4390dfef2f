"""Stops on the HTTPS port: who may look, who may hold pods, and what refused requests say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from glasslet.answers.stops import BreakRequest, BreaksAnswer, InspectAnswer, RightsAnswer
from glasslet.answers.wire import ErrorAnswer, decode, encode
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import LoopClock
from glasslet.glass.inspection.tree import Inspector
from glasslet.glass.stops.handlers import StopHandlers
from glasslet.glass.stops.routes import stop_routes
from glasslet.glass.stops.view import StopView
from glasslet.pods.census import PodCensus
from glasslet.record.store import Record
from glasslet.server.access.users import Attributes
from glasslet.server.request_pipeline import Access
from glasslet.stops.arrivals import Arrival
from glasslet.stops.holds import Holds
from glasslet.stops.stops import Stops
from tests.builders.pod import pod
from tests.component.server.test_server_glass import ask
from tests.component.server_fixture import access, everybody
from tests.fakes.conditions import InlineConditions
from tests.fakes.glass import FakeSeenPod
from tests.fakes.http_client import Answer
from tests.fakes.pod_node import EventLog

SANDBOX = encode(BreakRequest(at="sandbox"))


class Verbs:
    """Allows these verbs."""

    def __init__(self, *verbs: str) -> None:
        self._verbs = verbs

    async def allows(self, attributes: Attributes) -> bool:
        return attributes.verb in self._verbs and attributes.subresource == "glass"


class World:
    """The handlers of an agent with the pod default/web."""

    def __init__(self) -> None:
        record = Record()
        clock, census = LoopClock(), PodCensus()
        holds = Holds(recorder=record, events=EventLog(), clock=clock)
        inspector = Inspector(
            node="node-a",
            census=census,
            observed=lambda uid: None,
            last=lambda ref: (),
            standing=record.standing_of,
            hold_of=holds.hold_of,
            clock=clock,
        )
        view = StopView(census=census, inspector=inspector)
        self.stops = Stops(holds=holds, view=view, conditions=InlineConditions(), clock=clock)

        def tree(ref: PodRef, _arrival: Arrival | None) -> dict[str, Any]:
            return {"name": ref.name}

        self.handlers = StopHandlers(
            stops=self.stops, holds=holds, pods=lambda: [FakeSeenPod(pod=pod())], tree=tree, record=record
        )

    async def ask(self, method: str, path: str, who: Access | None = None, body: bytes = b"") -> Answer:
        return await ask(method, f"/glass/v1{path}", who or everybody(), stop_routes(lambda: self.handlers), body=body)


def may(*verbs: str) -> Access:
    return access(anonymous=True, authorizer=Verbs(*verbs))


async def test_who_may_only_get_looks_at_breaks_and_changes_nothing() -> None:
    world, who = World(), may("get")
    assert (await world.ask("GET", "/breaks", who)).status == 200
    assert (await world.ask("GET", "/pods/default/web/inspect", who)).status == 200
    for method, path in (
        *(("POST", "/breaks"), ("DELETE", "/breaks"), ("DELETE", "/breaks/1"), ("POST", "/continue")),
        *(("POST", "/pods/default/web/continue"), ("POST", "/pods/default/web/step")),
    ):
        assert (await world.ask(method, path, who, SANDBOX)).status == 403
    assert not world.stops.armed


async def test_create_is_the_right_to_hold_pods_and_to_let_them_go() -> None:
    world, who = World(), may("create")
    assert (await world.ask("POST", "/breaks", who, SANDBOX)).status == 200
    assert world.stops.breaks()[0].set_by == "system:anonymous"
    assert (await world.ask("DELETE", "/breaks/1", who)).status == 200
    assert (await world.ask("POST", "/continue", who)).status == 200
    assert not world.stops.armed


@pytest.mark.parametrize("verbs", [("get",), ("get", "create")])
async def test_the_rights_of_a_client_are_what_the_authorizer_allows(verbs: tuple[str, ...]) -> None:
    answer = await World().ask("GET", "/rights", may(*verbs))
    assert decode(answer.body, RightsAnswer).verbs == verbs


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field"),
    [
        ("POST", "/breaks", b"{", 400, "body"),
        ("POST", "/breaks", b'{"at":"sandbx"}', 400, "at"),
        ("POST", "/breaks", b'{"at":"sandbox","holdSeconds":"long"}', 400, "body"),
        ("POST", "/breaks", b"[" * 5_000, 400, "body"),
        ("DELETE", "/breaks/7", b"", 404, "break"),
        ("DELETE", "/breaks/seven", b"", 404, "break"),
        ("POST", "/pods/default/wob/continue", b"", 404, "pod"),
        ("POST", "/pods/default/web/step", b"", 409, "pod"),
    ],
)
async def test_a_refused_request_names_what_was_wrong(
    method: str, path: str, body: bytes, status: int, field: str
) -> None:
    answer = await World().ask(method, path, body=body)
    assert (answer.status, decode(answer.body, ErrorAnswer).field) == (status, field)


async def test_answers_have_the_shapes_of_answers() -> None:
    world = World()
    await world.ask("POST", "/breaks", body=SANDBOX)
    assert [row.at for row in decode((await world.ask("GET", "/breaks")).body, BreaksAnswer).breaks] == ["sandbox"]
    shown = decode((await world.ask("GET", "/pods/default/web/inspect")).body, InspectAnswer)
    assert shown.tree == {"name": "web"}
    assert json.loads((await world.ask("DELETE", "/breaks")).body)["removed"] == [1]
