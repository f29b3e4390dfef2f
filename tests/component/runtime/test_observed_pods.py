"""ObservedPods over the fake runtime, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import LoopClock
from glasslet.record.events import ChangeObserved
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import INCOMPLETE, UNREADABLE, RuntimeRejected, RuntimeUnavailable
from glasslet.runtime.model import ContainerPhase, ObservedPod
from glasslet.runtime.observed import Periods
from glasslet.runtime.protocols import RuntimeHint
from tests.component.observed_world import lists, reads_of, start_pod, world
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime


async def test_a_new_agent_knows_all_pods_once_synced() -> None:
    runtime = FakeRuntime()
    uids = {(await start_pod(runtime, name))[0] for name in ("web", "dns")}
    async with world(runtime) as w:
        assert {pod.uid for pod in w.observed.all()} == uids
        assert all(w.observed.settled(uid) for uid in uids)


async def test_details_are_there_after_the_first_list() -> None:
    runtime = FakeRuntime()
    uid, _, _ = await start_pod(runtime)
    async with world(runtime) as w:
        pod = w.observed.get(uid)
        assert pod is not None
        assert pod.sandboxes[0].ips


async def test_a_refresh_shows_what_an_own_call_just_did() -> None:
    async with world() as w:
        uid, _, _ = await start_pod(w.runtime)
        pod = await w.observed.refresh(uid)
        assert pod is not None
        assert [c.phase for c in pod.containers] == [ContainerPhase.RUNNING]
        assert w.observed.get(uid) is pod


async def test_a_refresh_of_a_pod_that_is_gone_gives_none() -> None:
    async with world() as w:
        assert await w.observed.refresh(PodUID("nobody")) is None


async def test_a_container_that_dies_is_seen_at_once_by_a_hint() -> None:
    runtime = FakeRuntime()
    uid, _, container = await start_pod(runtime)
    async with world(runtime) as w:
        runtime.kill(container, code=3)
        await asyncio.sleep(0.1)
        pod = w.observed.get(uid)
        assert pod is not None
        assert pod.containers[0].exit_code == 3


async def test_several_hints_of_one_change_cost_one_read() -> None:
    runtime = FakeRuntime()
    uid, sandbox, _ = await start_pod(runtime)
    async with world(runtime) as w:
        before = reads_of(runtime, uid)
        for _ in range(20):
            runtime.send_hint(RuntimeHint(id=sandbox, uid=uid))
        await asyncio.sleep(1)
        assert reads_of(w.runtime, uid) == before + 1


async def test_a_hint_that_an_own_refresh_already_answered_costs_no_read() -> None:
    async with world() as w:
        await asyncio.sleep(2)
        uid, _, _ = await start_pod(w.runtime)
        await w.observed.refresh(uid)
        before = reads_of(w.runtime, uid)
        await asyncio.sleep(1)
        assert reads_of(w.runtime, uid) == before


async def test_with_hints_the_full_list_is_slow() -> None:
    async with world() as w:
        await asyncio.sleep(5)
        before = lists(w.runtime)
        await asyncio.sleep(120)
        assert lists(w.runtime) - before == 2


async def test_without_hints_the_full_list_comes_every_second() -> None:
    # behaviours.md §11: "Relist every 1 s"
    runtime = FakeRuntime()
    runtime.serves_hints = False
    uid, _, container = await start_pod(runtime)
    async with world(runtime) as w:
        before = lists(runtime)
        runtime.kill(container)
        await asyncio.sleep(10.5)
        assert 9 <= lists(runtime) - before <= 11
        pod = w.observed.get(uid)
        assert pod is not None
        assert pod.containers[0].phase is ContainerPhase.EXITED


async def test_an_unchanged_pod_is_not_read_again_by_full_lists() -> None:
    runtime = FakeRuntime()
    runtime.serves_hints = False
    uid, _, _ = await start_pod(runtime)
    async with world(runtime) as w:
        before = reads_of(runtime, uid)
        await asyncio.sleep(30)
        assert reads_of(w.runtime, uid) == before


async def test_when_the_hint_stream_breaks_a_full_list_follows_at_once_and_the_stream_is_opened_again() -> None:
    async with world() as w:
        await asyncio.sleep(10)
        before = lists(w.runtime)
        w.runtime.break_hints()
        await asyncio.sleep(0.1)
        assert lists(w.runtime) == before + 1
        await asyncio.sleep(10)
        uid, _, container = await start_pod(w.runtime)
        w.runtime.kill(container, code=9)
        await asyncio.sleep(0.1)
        pod = w.observed.get(uid)
        assert pod is not None
        assert pod.containers[0].exit_code == 9


async def test_changes_missed_while_the_stream_was_broken_are_found() -> None:
    runtime = FakeRuntime()
    uid, _, container = await start_pod(runtime)
    async with world(runtime) as w:
        await asyncio.sleep(10)
        runtime.break_hints()
        await asyncio.sleep(0.5)
        runtime.kill(container)
        await asyncio.sleep(2)
        pod = w.observed.get(uid)
        assert pod is not None
        assert pod.containers[0].phase is ContainerPhase.EXITED


async def test_an_unknown_id_asks_for_a_full_list_after_a_moment() -> None:
    async with world() as w:
        await asyncio.sleep(5)
        before = lists(w.runtime)
        for _ in range(50):
            w.runtime.send_hint(RuntimeHint(id="stranger"))
        await asyncio.sleep(2)
        assert lists(w.runtime) == before + 1


async def test_a_hint_without_any_id_asks_for_a_full_list() -> None:
    async with world() as w:
        await asyncio.sleep(5)
        before = lists(w.runtime)
        w.runtime.send_hint(RuntimeHint())
        await asyncio.sleep(0.1)
        assert lists(w.runtime) == before + 1


async def test_a_hung_read_of_one_pod_blocks_only_that_pod() -> None:
    runtime = FakeRuntime()
    sick, _, _ = await start_pod(runtime, "sick")
    well = [await start_pod(runtime, f"well-{n}") for n in range(20)]
    async with world(runtime, periods=Periods(parallel_reads=2)) as w:
        runtime.hang(Verb.LIST_CONTAINERS, only=lambda subject: subject == sick)
        runtime.send_hint(RuntimeHint(uid=sick))
        await asyncio.sleep(0.1)
        for _, _, container in well:
            runtime.kill(container, code=5)
        await asyncio.sleep(1)
        codes = [pod.containers[0].exit_code for uid, _, _ in well if (pod := w.observed.get(uid))]
        assert codes == [5] * 20
        assert not w.observed.settled(sick)


async def test_a_pod_whose_first_read_hangs_does_not_hold_up_the_start_of_all_others() -> None:
    runtime = FakeRuntime()
    sick, _, _ = await start_pod(runtime, "sick")
    well, _, _ = await start_pod(runtime, "well")
    hang = runtime.hang(Verb.LIST_CONTAINERS, only=lambda subject: subject == sick)
    async with world(runtime) as w:
        assert w.observed.get(well) is not None
        assert not w.observed.settled(sick)
        hang.release()
        await asyncio.sleep(0.1)
        assert w.observed.settled(sick)
        assert w.observed.get(sick) is not None


async def test_a_read_that_failed_is_tried_again_by_the_next_full_list() -> None:
    runtime = FakeRuntime()
    uid, _, container = await start_pod(runtime)
    async with world(runtime) as w:
        await asyncio.sleep(5)
        for verb, subject in ((Verb.LIST_CONTAINERS, uid), (Verb.CONTAINER_STATUS, container)):
            runtime.fail(verb, RuntimeUnavailable(verb, "busy"), only=subject.__eq__)
        runtime.kill(container, code=4)
        await asyncio.sleep(1)
        assert not w.observed.settled(uid)
        await asyncio.sleep(60)
        pod = w.observed.get(uid)
        assert pod is not None
        assert pod.containers[0].exit_code == 4
        assert w.observed.settled(uid)


@pytest.mark.parametrize("code", [INCOMPLETE, UNREADABLE])
async def test_an_answer_that_cannot_be_used_is_a_finding_of_its_pod_until_it_can(code: str) -> None:
    runtime = FakeRuntime()
    uid, _, container = await start_pod(runtime)
    other, _, _ = await start_pod(runtime, "other")
    async with world(runtime) as w:
        await asyncio.sleep(5)
        error = RuntimeRejected(Verb.CONTAINER_STATUS, "the runtime's answer lacks image_ref", code=code)
        for verb, subject in ((Verb.LIST_CONTAINERS, uid), (Verb.CONTAINER_STATUS, container)):
            runtime.fail(verb, error, times=None, only=subject.__eq__)
        runtime.kill(container, code=4)
        await asyncio.sleep(1)
        known = w.record.of(PodRef("default", "web", uid))
        assert known is not None
        assert any("lacks image_ref" in text for text in known.findings())
        assert w.observed.settled(other)
        runtime.heal(Verb.LIST_CONTAINERS)
        runtime.heal(Verb.CONTAINER_STATUS)
        await asyncio.sleep(120)
        known = w.record.of(PodRef("default", "web", uid))
        assert known is not None
        assert known.findings() == ()


async def test_removed_pods_are_forgotten() -> None:
    runtime = FakeRuntime()
    uid, sandbox, _ = await start_pod(runtime)
    async with world(runtime) as w:
        await runtime.stop_sandbox(sandbox)
        await runtime.remove_sandbox(sandbox)
        await asyncio.sleep(0.1)
        assert w.observed.get(uid) is None
        assert w.observed.all() == ()


async def test_the_address_of_a_stopped_sandbox_is_kept() -> None:
    runtime = FakeRuntime()
    uid, sandbox, _ = await start_pod(runtime)
    async with world(runtime) as w:
        known = w.observed.get(uid)
        assert known is not None
        await runtime.stop_sandbox(sandbox)
        runtime.sandboxes[sandbox].ips = ()
        pod = await w.observed.refresh(uid)
        assert pod is not None
        assert pod.sandboxes[0].ips == known.sandboxes[0].ips


async def test_subscribers_get_old_and_new_and_a_failing_one_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with world() as w:
        told: list[tuple[ObservedPod | None, ObservedPod | None]] = []

        def broken(uid: PodUID, old: ObservedPod | None, new: ObservedPod | None) -> None:
            raise RuntimeError("oops")

        w.observed.subscribe(broken)
        undo = w.observed.subscribe(lambda uid, old, new: told.append((old, new)))
        uid, _, container = await start_pod(w.runtime)
        first = await w.observed.refresh(uid)
        w.runtime.kill(container)
        second = await w.observed.refresh(uid)
        undo()
        await w.runtime.remove_container(container)
        await w.observed.refresh(uid)
        assert told == [(None, first), (first, second)]
        assert w.figures.lost == 3


async def test_an_unchanged_refresh_tells_nobody() -> None:
    runtime = FakeRuntime()
    uid, _, _ = await start_pod(runtime)
    async with world(runtime) as w:
        told: list[PodUID] = []
        w.observed.subscribe(lambda uid, old, new: told.append(uid))
        await w.observed.refresh(uid)
        assert told == []


async def test_changes_are_written_into_the_record_of_their_pod() -> None:
    runtime = FakeRuntime()
    uid, _, container = await start_pod(runtime)
    async with world(runtime) as w:
        runtime.kill(container, code=1)
        await asyncio.sleep(0.1)
        record = w.record.of(uid)
        assert record is not None
        seen = [(e.subject, e.old, e.new) for e in record.events if isinstance(e, ChangeObserved)]
        assert ("container main", "running", "exited 1") in seen


async def test_health_is_lost_after_three_minutes_without_the_runtime() -> None:
    # behaviours.md §11: "unhealthy when the last relist is older than 3 min"
    async with world() as w:
        assert w.observed.healthy()
        await asyncio.sleep(10)
        w.runtime.down = True
        w.runtime.break_hints()
        await asyncio.sleep(170)
        assert w.observed.healthy()
        await asyncio.sleep(15)
        problem = w.observed.health_problem()
        assert problem is not None
        assert problem.startswith("pleg was last seen active 3m")
        assert problem.endswith("ago; threshold is 3m0s")
        w.runtime.down = False
        await asyncio.sleep(2)
        assert w.observed.healthy()


async def test_before_the_first_list_nothing_is_healthy() -> None:
    runtime = FakeRuntime()
    runtime.down = True
    async with world(runtime, wait=False) as w:
        await asyncio.sleep(5)
        assert w.observed.health_problem() == "pleg has yet to be successful"
        assert not w.observed.synced.is_set()
        runtime.down = False
        await asyncio.sleep(2)
        assert w.observed.synced.is_set()


async def test_lists_are_measured() -> None:
    runtime = FakeRuntime()
    runtime.serves_hints = False
    runtime.latency[Verb.LIST_CONTAINERS] = 0.25
    async with world(runtime) as w:
        await asyncio.sleep(3)
        seconds, interval = w.figures.relists[-1]
        assert seconds == pytest.approx(0.25, abs=0.01)
        assert interval == pytest.approx(1.25, abs=0.05)
        assert w.figures.relists[0][1] is None
        assert w.figures.seen[0] == pytest.approx(LoopClock().start.timestamp(), abs=1)
