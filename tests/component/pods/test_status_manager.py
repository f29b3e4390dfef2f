"""The one writer of pod statuses, against an API server that says what the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.codec import convert
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from glasslet.kubeapi.errors import APIError, Conflict, Forbidden, Invalid, NotFound, Throttled, Unavailable
from glasslet.record.events import ChangeObserved
from glasslet.record.history import PodRecord
from glasslet.record.stations import Station
from glasslet.record.store import Record
from glasslet.record.way import Facts, no_facts
from glasslet.status.manager import StatusManager
from tests.builders.pod import container
from tests.fakes.api_server import FakeAPIServer, Plain

pytestmark = pytest.mark.looptime
EMPTY = PodRecord(pod=None)
PENDING, RUNNING, FAILED = (PodStatus(phase=phase) for phase in ("Pending", "Running", "Failed"))
GOING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}}
"""The pod is marked for deletion."""


class World:
    """A server with the pod `default/web`, a watched copy that is as old as the test wants, and the manager."""

    def __init__(self) -> None:
        self.server = FakeAPIServer()
        self.server.put("pods", {"metadata": {"name": "web", "namespace": "default"}, "spec": {"nodeName": "n1"}})
        self.pod = self.server_pod()
        self.uid = PodUID(self.pod.metadata.uid)
        self.watched: Pod | None = None
        self.lag = False
        self.synced = asyncio.Event()
        self.synced.set()
        self.record = Record()
        self.took: list[float] = []
        self.held: list[str] = []
        self.go = asyncio.Event()
        self.go.set()
        self.manager = StatusManager(
            recorder=self.record, client=self.server, pods=self, took=self.took.append, stops=self
        )

    armed = True

    async def at(self, place: str, *, container: str = "", after: bool = False, facts: Facts = no_facts) -> bool:
        """Holds the status before it is sent, until `go`."""
        if not after:
            self.held.append(place)
            await self.go.wait()
        return not after

    def let_go(self, pod: PodRef) -> None:
        self.go.set()

    def let_all_go(self, why: str) -> None:
        self.go.set()

    def server_pod(self) -> Pod:
        return convert(self.server.get_plain("pods", "default", "web"), Pod)

    def api_pod(self, ref: PodRef) -> Pod | None:
        """The watched copy."""
        if self.lag:
            return self.watched
        found = self.server.get_plain("pods", "default", ref.name)
        return convert(found, Pod) if found is not None and found["metadata"]["uid"] == ref.uid else None

    def freeze_watch(self) -> None:
        """From now on the watch brings nothing."""
        self.watched, self.lag = self.server_pod(), True

    def phase(self) -> str:
        return self.server_pod().status.phase

    def change(self, status: Plain) -> None:
        """Another client writes the status."""
        self.server.change("pods", "default", "web", {"status": status})
        self.manager.changed(self.uid)


@asynccontextmanager
async def managed() -> AsyncIterator[World]:
    world = World()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(world.manager.run())
        await asyncio.sleep(0)
        yield world
        task.cancel()


async def test_published_status_reaches_the_server() -> None:
    async with managed() as world:
        world.manager.publish(world.pod, RUNNING)
        await asyncio.sleep(1)
        assert world.phase() == "Running"
        assert len(world.took) == 1


async def test_a_status_that_is_held_is_sent_once_its_pod_goes_on() -> None:
    async with managed() as world:
        world.go.clear()
        world.manager.publish(world.pod, PodStatus(phase="Running"))
        await asyncio.sleep(60)
        assert (world.held, world.phase()) == ([Station.STATUS], "Pending")
        world.go.set()
        await asyncio.sleep(1)
        assert world.phase() == "Running"


async def test_addresses_of_a_crowd_wait_for_what_comes_next_and_readiness_does_not() -> None:
    """40 pods at once: changes on which no controller acts wait 2 s instead of half a second, and are sent together."""
    async with managed() as world:
        pods = []
        for number in range(40):
            world.server.put("pods", {"metadata": {"name": f"web-{number}", "namespace": "default"}, "spec": {}})
            pods.append(convert(world.server.get_plain("pods", "default", f"web-{number}"), Pod))
        for pod in pods:
            world.manager.publish(pod, PodStatus(phase=pod.status.phase, host_ip="198.18.0.1"))
        await asyncio.sleep(1.5)
        assert world.server.count("PATCH") == 0
        ready = PodCondition(type="Ready", status="True")
        world.manager.publish(pods[0], PodStatus(phase=pods[0].status.phase, conditions=(ready,)))
        await asyncio.sleep(0.1)
        assert world.server.count("PATCH") == 1
        await asyncio.sleep(0.5)
        assert world.server.count("PATCH") == 40


async def test_in_no_crowd_is_anything_held_back_for_more_than_three_seconds() -> None:
    async with managed() as world:
        for number in range(150):
            world.server.put("pods", {"metadata": {"name": f"web-{number}", "namespace": "default"}, "spec": {}})
            pod = convert(world.server.get_plain("pods", "default", f"web-{number}"), Pod)
            world.manager.publish(pod, PodStatus(phase=pod.status.phase, host_ip="198.18.0.1"))
        await asyncio.sleep(2.5)
        assert world.server.count("PATCH") == 0
        await asyncio.sleep(1)
        assert world.server.count("PATCH") == 150


async def test_statuses_published_meanwhile_are_coalesced_to_the_newest() -> None:
    async with managed() as world:
        world.server.latency = 1.0
        for phase in ("Running", "Pending", "Failed", "Succeeded"):
            world.manager.publish(world.pod, PodStatus(phase=phase))
            await asyncio.sleep(0.1)
        await asyncio.sleep(5)
        assert (world.phase(), world.server.count("PATCH")) == ("Succeeded", 2)


@pytest.mark.parametrize("error", [Unavailable, Throttled, Forbidden])
async def test_server_that_does_not_take_it_is_asked_again(error: type[APIError]) -> None:
    async with managed() as world:
        world.server.fail_next(error, verb="PATCH", times=5)
        world.manager.publish(world.pod, RUNNING)
        await asyncio.sleep(60)
        assert world.phase() == "Running"


@pytest.mark.parametrize("error", [NotFound, Conflict])
async def test_pod_that_is_gone_is_not_written_again_before_the_next_pass(error: type[APIError]) -> None:
    async with managed() as world:
        world.server.fail_next(error, verb="PATCH", times=100)
        world.manager.publish(world.pod, RUNNING)
        await asyncio.sleep(9)
        assert world.phase() == "Pending"
        assert world.server.count("PATCH") == 1


async def test_pod_made_anew_under_the_same_name_is_not_written() -> None:
    # behaviours §6: "A pod recreated with another UID is skipped."
    async with managed() as world:
        world.freeze_watch()
        world.server.remove("pods", "default", "web")
        world.server.put("pods", {"metadata": {"name": "web", "namespace": "default"}, "spec": {}})
        world.manager.publish(world.pod, RUNNING)
        await asyncio.sleep(9)
        assert world.phase() == "Pending"


async def test_refused_status_is_told_once_and_not_repeated() -> None:
    async with managed() as world:
        world.server.fail_next(Invalid, verb="PATCH", times=100)
        world.manager.publish(world.pod, RUNNING)
        await asyncio.sleep(60)
        assert world.server.count("PATCH") == 1


async def test_equal_status_is_not_sent_again() -> None:
    # behaviours §6: "Identical statuses are skipped"
    async with managed() as world:
        for _ in range(3):
            world.manager.publish(world.pod, RUNNING)
            await asyncio.sleep(20)
        assert world.server.count("PATCH") == 1


async def test_status_that_the_server_has_already_costs_no_request() -> None:
    async with managed() as world:
        world.manager.publish(world.pod, PENDING)
        await asyncio.sleep(60)
        assert not world.server.requests


async def test_watch_that_lags_behind_our_own_write_is_not_believed() -> None:
    async with managed() as world:
        world.freeze_watch()
        world.manager.publish(world.pod, RUNNING)
        await asyncio.sleep(60)
        assert world.server.count("PATCH") == 1


async def test_field_that_others_changed_is_written_back_within_ten_seconds() -> None:
    # behaviours §6: "a full reconcile every 10 s. [...] In the full pass a status changed by others is written back."
    async with managed() as world:
        world.manager.publish(world.pod, RUNNING)
        await asyncio.sleep(1)
        world.change({"phase": "Failed"})
        await asyncio.sleep(10)
        assert world.phase() == "Running"


async def test_server_that_keeps_something_else_is_not_asked_for_ever() -> None:
    """A field that the server drops differs in every comparison; nothing changed since, so nothing is repeated."""
    async with managed() as world:

        def drop(_path: str, _body: Plain) -> Plain:
            return world.server.get_plain("pods", "default", "web") or {}

        world.server.answer("PATCH", "/status$", drop)
        world.manager.publish(world.pod, RUNNING)
        await asyncio.sleep(300)
        assert world.server.count("PATCH") == 1


async def test_condition_of_others_is_never_written_back() -> None:
    async with managed() as world:
        stale = PodCondition(type="example.com/Theirs", status="False")
        world.change({"conditions": [{"type": "example.com/Theirs", "status": "True"}]})
        ours = PodCondition(type="Ready", status="True")
        world.manager.publish(world.pod, replace(RUNNING, conditions=(stale, ours)))
        await asyncio.sleep(30)
        found = {c.type: c.status for c in world.server_pod().status.conditions}
    assert found == {"example.com/Theirs": "True", "Ready": "True"}


async def test_a_change_on_which_no_controller_acts_is_sent_with_the_next() -> None:
    async with managed() as world:
        for ip in ("10.0.0.1", "10.0.0.2"):
            world.manager.publish(world.pod, replace(PENDING, pod_ip=ip))
            await asyncio.sleep(0.09)
        assert not world.server.count("PATCH")
        world.manager.publish(world.pod, replace(RUNNING, pod_ip="10.0.0.2"))
        await asyncio.sleep(0.01)
        assert world.server.count("PATCH") == 1
        assert world.phase() == "Running"


async def test_a_change_on_which_no_controller_acts_is_sent_soon() -> None:
    async with managed() as world:
        for number in range(40):
            world.manager.publish(world.pod, replace(PENDING, pod_ip=f"10.0.0.{number}"))
            await asyncio.sleep(0.05)
        assert 3 <= world.server.count("PATCH") <= 5


async def test_last_changes_of_a_deleted_pod_go_along_with_its_end() -> None:
    async with managed() as world:
        world.server.change("pods", "default", "web", GOING)
        unready = (PodCondition(type="Ready", status="False"),)
        world.manager.publish(world.pod, replace(PENDING, conditions=unready))
        await asyncio.sleep(0.1)
        world.manager.publish(world.pod, FAILED)
        await asyncio.sleep(0.1)
        assert not world.server.count("PATCH")
        world.manager.finish(world.pod, FAILED)
        await asyncio.sleep(0.1)
        assert (world.server.count("PATCH"), world.server.count("DELETE")) == (1, 1)


async def test_end_of_a_deleted_pod_that_takes_long_to_clear_up_is_told_after_half_a_second() -> None:
    async with managed() as world:
        world.server.change("pods", "default", "web", GOING)
        world.manager.publish(world.pod, FAILED)
        await asyncio.sleep(0.6)
        assert (world.phase(), world.server.count("DELETE")) == ("Failed", 0)


async def test_change_of_readiness_does_not_wait_for_the_rate_limit() -> None:
    urgencies: list[bool] = []
    async with managed() as world:
        patch = world.server.patch

        async def spy(*args: Any, urgent: bool = False, **kwargs: Any) -> Any:
            urgencies.append(urgent)
            return await patch(*args, **kwargs)

        world.server.patch = spy  # type: ignore[method-assign]
        world.manager.publish(world.pod, RUNNING)
        await asyncio.sleep(1)
        world.manager.publish(world.pod, replace(RUNNING, conditions=(PodCondition(type="Ready", status="True"),)))
        await asyncio.sleep(1)
    assert urgencies == [False, True]


async def test_a_finished_pod_that_is_not_deleted_stays() -> None:
    async with managed() as world:
        world.manager.finish(world.pod, FAILED)
        await asyncio.sleep(60)
        assert world.phase() == "Failed"
        assert not world.server.count("DELETE")


async def test_object_is_deleted_when_the_deletion_comes_after_the_end() -> None:
    async with managed() as world:
        world.server.put(
            "pods",
            {
                "metadata": {"name": "web", "namespace": "default", "finalizers": ["example.com/slow"]},
                "spec": {"nodeName": "n1"},
            },
        )
        world.manager.finish(world.pod, FAILED)
        await asyncio.sleep(1)
        world.server.delete_pod("default", "web")
        world.manager.changed(world.uid)
        await asyncio.sleep(1)
        assert world.server.count("DELETE") == 1


async def test_mirror_is_never_deleted_by_the_status_of_its_pod() -> None:
    async with managed() as world:
        meta = {"annotations": {"kubernetes.io/config.mirror": "hash"}}
        world.server.change("pods", "default", "web", {"metadata": meta})
        world.server.delete_pod("default", "web", 10)
        world.manager.finish(world.pod, FAILED)
        await asyncio.sleep(60)
        assert not world.server.count("DELETE")


async def test_failed_deletion_is_repeated() -> None:
    async with managed() as world:
        world.server.delete_pod("default", "web", 10)
        world.server.fail_next(Unavailable, verb="DELETE", times=3)
        world.manager.finish(world.pod, FAILED)
        await asyncio.sleep(60)
        assert world.server.get_plain("pods", "default", "web") is None


async def test_the_end_of_a_pod_is_kept_until_it_is_known_whether_the_server_has_the_pod() -> None:
    async with managed() as world:
        world.synced.clear()
        world.watched, world.lag = None, True
        world.manager.publish(world.pod, PodStatus(phase="Succeeded"))
        world.manager.finish(world.pod, PodStatus(phase="Succeeded"))
        await asyncio.sleep(30)
        world.lag = False
        world.synced.set()
        world.manager.changed(world.uid)
        await asyncio.sleep(1)
        assert world.phase() == "Succeeded"


async def test_ready_and_its_acceptance_are_milestones_of_the_pod() -> None:
    ready = PodStatus(phase="Running", conditions=(PodCondition(type="Ready", status="True"),))
    async with managed() as world:
        world.manager.publish(world.pod, ready)
        world.manager.publish(world.pod, replace(ready, pod_ip="10.0.0.7"))
        await asyncio.sleep(1)
    known = world.record.of(pod_ref(world.pod))
    assert known is not None
    told = [(event.subject, event.new) for event in known.events if isinstance(event, ChangeObserved)]
    assert told == [("condition Ready", "True"), ("condition Ready accepted at API", "True")]


async def test_a_status_that_goes_against_an_end_is_not_told() -> None:
    # behaviours.md §5: "A status that would take a terminated container back to running against its policy is not
    # sent."
    async with managed() as world:
        never = replace(world.pod, spec=replace(world.pod.spec, restart_policy="Never", containers=(container(),)))
        ended = ContainerState(terminated=ContainerStateTerminated(exit_code=1))
        running = ContainerState(running=ContainerStateRunning())
        for state in (ended, running):
            one = ContainerStatus(name="main", state=state, ready=False, restart_count=0, image="", image_id="")
            world.manager.publish(never, PodStatus(phase="Running", container_statuses=(one,)))
            await asyncio.sleep(1)
        told = world.server_pod().status.container_statuses[0].state
        assert told.terminated is not None
        assert any("illegal transition" in text for text in (world.record.of(pod_ref(never)) or EMPTY).findings())
        world.manager.publish(never, FAILED)
        assert not (world.record.of(pod_ref(never)) or EMPTY).findings()
