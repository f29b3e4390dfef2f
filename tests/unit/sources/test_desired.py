"""DesiredPods: one set of pods from several sources."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.sources.desired import DesiredPods
from tests.builders.pod import pod
from tests.fakes.waits import WaitLog


class Still:
    """A clock that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 7.0


class World:
    def __init__(self) -> None:
        self.delivered: list[Sequence[PodUpdate]] = []
        self.recorder = WaitLog()
        self.events: list[tuple[str, ...]] = []
        self.desired = DesiredPods(
            sources=("file", "http"),
            clock=Still(),
            recorder=self.recorder,
            events=lambda pod, *words: self.events.append((pod.uid, *words)),
        )
        self.desired.subscribe(self.delivered.append)


@pytest.fixture
def world() -> World:
    return World()


def test_is_ready_once_every_source_has_reported(world: World) -> None:
    world.desired.update_source("file", [])
    assert not world.desired.ready()
    assert world.desired.waiting_for() == {"http"}
    world.desired.update_source("http", [])
    assert world.desired.ready()


def test_an_empty_first_report_is_delivered_too(world: World) -> None:
    world.desired.update_source("file", [])
    assert world.delivered == [()]


def test_a_report_without_change_is_not_delivered(world: World) -> None:
    world.desired.update_source("file", [pod()])
    world.desired.update_source("file", [pod()])
    assert len(world.delivered) == 1


def test_updates_carry_source_and_time(world: World) -> None:
    world.desired.update_source("http", [pod()])
    update = world.delivered[0][0]
    assert (update.kind, update.source, update.seen_at) == (UpdateKind.ADD, "http", 7.0)


def test_sources_do_not_remove_each_others_pods(world: World) -> None:
    world.desired.update_source("file", [pod(name="a", uid="1")])
    world.desired.update_source("http", [pod(name="b", uid="2")])
    world.desired.update_source("file", [])
    assert [one.metadata.name for one in world.desired.all()] == ["b"]


def test_a_pod_is_found_by_its_uid(world: World) -> None:
    world.desired.update_source("file", [pod(uid="1")])
    found = world.desired.get(PodUID("1"))
    assert found is not None
    assert found.metadata.annotations["kubernetes.io/config.source"] == "file"
    assert world.desired.get(PodUID("2")) is None


def test_a_duplicate_is_one_finding_however_often_it_is_reported(world: World) -> None:
    for _ in range(3):
        world.desired.update_source("file", [pod(uid="1"), pod(uid="2")])
    assert world.recorder.findings == [
        "two manifests (file) have pods of this name and namespace: the one with uid 2 is left out"
    ]


def test_a_duplicate_is_one_event_of_the_pod_that_is_left_out(world: World) -> None:
    for _ in range(3):
        world.desired.update_source("file", [pod(uid="1"), pod(uid="2")])
    text = 'Error validating pod web_default(2) from file due to duplicate pod name "web", ignoring'
    assert world.events == [("2", "Warning", "FailedValidation", text)]


def test_recalled_pods_are_desired_but_their_source_has_not_reported(world: World) -> None:
    world.desired.update_source("file", [])
    world.desired.recall("http", [pod(name="kept", uid="1"), pod(name="gone", uid="2")])
    assert [update.kind for update in world.delivered[-1]] == ["add", "add"]
    assert not world.desired.ready()


def test_the_first_report_corrects_what_was_recalled(world: World) -> None:
    world.desired.update_source("file", [])
    world.desired.recall("http", [pod(name="kept", uid="1"), pod(name="gone", uid="2")])
    world.desired.update_source("http", [pod(name="kept", uid="1"), pod(name="new", uid="3")])
    assert [(update.kind, update.pod.metadata.name) for update in world.delivered[-1]] == [
        ("remove", "gone"),
        ("add", "new"),
    ]
    assert world.desired.ready()


def test_nothing_is_recalled_for_a_source_that_has_reported(world: World) -> None:
    world.desired.update_source("http", [])
    world.desired.recall("http", [pod()])
    assert world.desired.all() == []


def test_pods_are_told_as_their_source_gave_them(world: World) -> None:
    given = pod()
    world.desired.update_source("http", [given])
    assert world.desired.given_by("http") == [given]


def test_a_duplicate_that_is_gone_is_no_finding_any_more(world: World) -> None:
    world.desired.update_source("file", [pod(uid="1"), pod(uid="2")])
    assert len(world.recorder.findings) == 1
    world.desired.update_source("file", [pod(uid="1")])
    assert world.recorder.findings == []
