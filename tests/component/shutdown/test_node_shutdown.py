"""A shutdown of the node, in virtual time: what ends when, and when the lock goes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import LoopClock
from glasslet.exchange.facts import StatusOverride
from glasslet.host.systemd.errors import BusAway
from glasslet.record.store import Record
from glasslet.shutdown.groups import Group
from glasslet.shutdown.manager import NodeShutdown, PodsToEnd
from glasslet.shutdown.state import PROBLEM, ShutdownFile, ShutdownFlag
from tests.builders.podspec import pod_of
from tests.fakes.background import in_background

pytestmark = pytest.mark.looptime


class Node:
    """logind, and pods that take `slow` seconds to end and `send` more to be reported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = Record(clock=LoopClock())
        self.flag = ShutdownFlag()
        self.events: list[tuple[str, str, str]] = []
        self.slow, self.send = 3.0, 1.0
        self.killed: dict[str, tuple[float, int]] = {}
        """When, and with which grace."""
        self.verdicts: set[StatusOverride] = set()
        self.pods: list[Pod] = []
        self.delays = [5.0, 5.0, 40.0]
        """Answers of logind: the last one stays."""
        self.raised_to: float | None = None
        self.away = False
        self.connected = True
        self.begun = False
        self.locks: list[int] = []
        self.heard: Callable[[bool], None] = lambda begins: None
        self.changes = 0

    # -- logind

    async def delay(self) -> float:
        if self.away:
            raise BusAway("logind: no answer over D-Bus within 30 s")
        return self.delays.pop(0) if len(self.delays) > 1 else self.delays[0]

    async def preparing(self) -> bool:
        return self.begun

    async def raise_delay(self, seconds: float) -> None:
        self.raised_to = seconds

    async def lock(self) -> int:
        reading, writing = os.pipe()
        self.locks.append(reading)
        os.set_blocking(reading, False)
        return writing

    def locked(self) -> int:
        """How many locks are open."""
        return sum(not _closed(lock) for lock in self.locks)

    # -- pods

    def kill(self, uid: PodUID, verdict: StatusOverride, grace: int) -> None:
        self.killed[uid] = (asyncio.get_running_loop().time(), grace)
        self.verdicts.add(verdict)

    def past(self, uid: PodUID, seconds: float) -> bool:
        return uid in self.killed and asyncio.get_running_loop().time() - self.killed[uid][0] >= seconds

    def guarded(self, heard: Callable[[bool], None]) -> Node:
        self.heard = heard
        return self

    def changed(self) -> None:
        self.changes += 1

    def manager(self, groups: Sequence[Group]) -> NodeShutdown:
        clock = LoopClock()
        return NodeShutdown(
            groups=groups,
            guard=self.guarded,
            pods=PodsToEnd(
                active=lambda: self.pods,
                kill=self.kill,
                ended=lambda uid: self.past(uid, self.slow),
                reported=lambda uid: self.past(uid, self.slow + self.send),
            ),
            flag=self.flag,
            flag_changed=self.changed,
            times=ShutdownFile(str(self.folder / "state"), now=clock.now, metrics=None),
            events=lambda *words: self.events.append(words),
            clock=clock,
            recorder=self.record,
        )


GROUPS = (Group(0, 30), Group(2_000_000_000, 10))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.pods = [
        pod_of(meta={"uid": "web"}, terminationGracePeriodSeconds=5),
        pod_of(meta={"uid": "dns"}, terminationGracePeriodSeconds=60, priority=2_000_001_000),
    ]
    return made


@asynccontextmanager
async def guarding(node: Node, groups: Sequence[Group] = GROUPS) -> AsyncIterator[None]:
    async with in_background(node.manager(groups).run):
        await asyncio.sleep(7)
        yield


async def test_a_node_is_guarded_by_one_lock_and_a_delay_that_is_long_enough(node: Node) -> None:
    # behaviours.md §27: "if InhibitDelayMaxSec is below the need writes /etc/systemd/logind.conf.d/99-kubelet.conf"
    # behaviours.md §27: "Active if shutdownGracePeriod or the priority list is set. Takes a systemd delay inhibitor
    # lock"
    async with guarding(node):
        assert (node.locked(), node.raised_to) == (1, 40)
        assert node.record.findings() == []


async def test_a_delay_that_stays_too_short_is_a_finding_and_the_lock_is_held(node: Node) -> None:
    node.delays = [5.0]
    async with guarding(node):
        assert node.locked() == 1
        assert any("InhibitDelayMaxSec (5s) is less than requested" in text for text in node.record.findings())


async def test_a_logind_that_is_away_is_tried_again(node: Node) -> None:
    node.away = True
    async with guarding(node):
        assert "not guarded" in node.record.findings()[0]
        node.away = False
        await asyncio.sleep(15)
        assert (node.locked(), node.record.findings()) == (1, [])


async def test_the_lock_is_taken_again_on_a_new_connection(node: Node) -> None:
    # behaviours.md §27: "A lost system bus is reconnected after 1 s."
    async with guarding(node):
        node.connected = False
        await asyncio.sleep(2)
        node.connected = True
        await asyncio.sleep(7)
        assert (len(node.locks), node.locked()) == (2, 1)


async def test_the_node_is_not_ready_at_once_and_says_so(node: Node) -> None:
    # behaviours.md §27: "On PrepareForShutdown(true): node Ready False (`node is shutting down`), event NodeShutdown,
    # new pods refused (reason NodeShutdown)."
    async with guarding(node):
        node.heard(True)
        assert node.flag.problem() == PROBLEM == "node is shutting down"
        assert node.changes == 1
        assert node.events == [("Normal", "Shutdown", "Shutdown manager detected shutdown event")]


async def test_critical_pods_end_after_the_others(node: Node) -> None:
    async with guarding(node):
        node.heard(True)
        await asyncio.sleep(1)
        assert list(node.killed) == ["web"]
        await asyncio.sleep(3)
        assert list(node.killed) == ["web", "dns"]
        assert [grace for _, grace in node.killed.values()] == [5, 10]


async def test_pods_fail_with_upstreams_reason_and_condition(node: Node) -> None:
    # behaviours.md §27: "Pods: Failed (unless already ended), reason Terminated, message `Pod was terminated in
    # response to imminent node shutdown.`, DisruptionTarget TerminationByKubelet."
    async with guarding(node):
        node.heard(True)
        await asyncio.sleep(1)
        (verdict,) = node.verdicts
        text = "Pod was terminated in response to imminent node shutdown."
        assert (verdict.phase, verdict.reason, verdict.message, verdict.disruption) == (
            "Failed",
            "Terminated",
            text,
            text,
        )


async def test_the_lock_is_held_until_the_last_status_is_accepted(node: Node) -> None:
    async with guarding(node):
        node.heard(True)
        await asyncio.sleep(6.5)
        assert node.locked() == 1
        await asyncio.sleep(1)
        assert node.locked() == 0


async def test_a_pod_that_does_not_end_holds_up_its_group_no_longer_than_its_time(node: Node) -> None:
    # behaviours.md §27: "the group's whole time is the limit, it ends earlier when all pods are done; volume unmounts
    # are awaited too; then the lock is released."
    node.slow = 1000
    async with guarding(node):
        node.heard(True)
        await asyncio.sleep(29.5)
        assert list(node.killed) == ["web"]
        await asyncio.sleep(1)
        assert list(node.killed) == ["web", "dns"]
        await asyncio.sleep(9.2)
        assert node.locked() == 0


async def test_pods_of_a_group_without_time_get_what_is_left_of_the_whole(node: Node) -> None:
    node.pods = node.pods[:1]
    async with guarding(node, (Group(0, 0), Group(2_000_000_000, 10))):
        node.heard(True)
        await asyncio.sleep(3.5)
        assert node.locked() == 1
        await asyncio.sleep(1)
        assert node.locked() == 0
        assert node.killed["web"][1] == 0


async def test_a_cancelled_shutdown_ends_no_further_pods_and_keeps_the_lock(node: Node) -> None:
    async with guarding(node):
        node.heard(True)
        await asyncio.sleep(1)
        node.heard(False)
        await asyncio.sleep(50)
        assert list(node.killed) == ["web"]
        assert node.locked() == 1
        assert node.flag.problem() == ""
        assert node.events[-1][2] == "Shutdown manager detected shutdown cancellation"
        assert node.record.findings() == []


async def test_a_lock_that_was_released_is_taken_again_after_a_cancellation(node: Node) -> None:
    # behaviours.md §27: "Cancel: lock is taken again."
    async with guarding(node):
        node.heard(True)
        await asyncio.sleep(20)
        assert node.locked() == 0
        node.heard(False)
        await asyncio.sleep(1)
        assert node.locked() == 1


async def test_a_shutdown_that_began_unheard_is_carried_out(node: Node) -> None:
    node.begun = True
    async with guarding(node):
        assert node.flag.raised
        assert "web" in node.killed


async def test_the_wait_names_the_group(node: Node) -> None:
    async with guarding(node):
        node.heard(True)
        await asyncio.sleep(1)
        assert "1 pods of priority 0 and above to end" in [wait.on for wait in node.record.live_waits()]


async def test_an_agent_that_ends_lets_go_of_the_lock(node: Node) -> None:
    async with guarding(node):
        assert node.locked() == 1
    assert node.locked() == 0


def _closed(end: int) -> bool:
    """Whether nobody has the other end of a pipe any more."""
    try:
        return os.read(end, 1) == b""
    except BlockingIOError:
        return False
