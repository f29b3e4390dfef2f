"""ObservedPods reads as little as a change asks for, and own calls and hints do not get in each other's way."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.api.pod_ref import PodRef
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeUnavailable
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod
from glasslet.runtime.protocols import RuntimeHint
from tests.component.observed_world import lists, start_pod, world
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime


def ref(name: str = "web") -> PodRef:
    return PodRef("default", name, PodUID(f"uid-{name}"))


def calls_of(runtime: FakeRuntime, before: int) -> list[Verb]:
    return [call.verb for call in runtime.calls[before:]]


async def test_after_the_end_of_a_known_container_one_call_reads_just_that_container() -> None:
    runtime = FakeRuntime()
    uid, _, container = await start_pod(runtime)
    async with world(runtime) as w:
        await asyncio.sleep(2)
        before = len(runtime.calls)
        runtime.kill(container, code=3)
        runtime.send_hint(RuntimeHint(id=container, uid=uid, kind="container_stopped"))
        await asyncio.sleep(1)
        assert calls_of(runtime, before) == [Verb.CONTAINER_STATUS]
        assert w.observed.settled(uid)
        pod = w.observed.get(uid)
        assert pod is not None
        assert pod.containers[0].exit_code == 3


async def test_when_the_sandbox_ends_with_its_container_the_whole_pod_is_read() -> None:
    runtime = FakeRuntime()
    uid, sandbox, container = await start_pod(runtime)
    async with world(runtime) as w:
        await asyncio.sleep(2)
        before = len(runtime.calls)
        runtime.kill(container, code=3)
        runtime.kill_sandbox(sandbox)
        await asyncio.sleep(1)
        assert calls_of(runtime, before)[0] is Verb.LIST_POD_SANDBOX
        pod = w.observed.get(uid)
        assert pod is not None
        assert (pod.sandboxes[0].ready, pod.containers[0].exit_code, w.observed.settled(uid)) == (False, 3, True)


async def test_a_container_that_cannot_be_read_alone_is_read_with_its_pod() -> None:
    runtime = FakeRuntime()
    uid, _, container = await start_pod(runtime)
    async with world(runtime) as w:
        await asyncio.sleep(2)
        runtime.fail(Verb.CONTAINER_STATUS, RuntimeUnavailable("ContainerStatus", "busy"))
        runtime.kill(container, code=3)
        await asyncio.sleep(1)
        pod = w.observed.get(uid)
        assert pod is not None
        assert (pod.containers[0].exit_code, w.observed.settled(uid)) == (3, True)


async def test_after_an_own_change_one_call_reads_just_what_was_made() -> None:
    async with world() as w:
        await asyncio.sleep(2)
        uid, sandbox, container = await start_pod(w.runtime)
        before = len(w.runtime.calls)
        await w.observed.refresh_sandbox(ref(), sandbox)
        pod = await w.observed.refresh_container(ref(), container, sandbox)
        assert calls_of(w.runtime, before) == [Verb.POD_SANDBOX_STATUS, Verb.CONTAINER_STATUS]
        assert pod == await w.observed.refresh(uid)


async def test_a_hint_that_comes_while_the_id_is_not_known_yet_costs_no_read_once_it_is() -> None:
    async with world() as w:
        await asyncio.sleep(2)
        with w.observed.changing(ref().uid):
            _, sandbox, container = await start_pod(w.runtime)
            await asyncio.sleep(3)
            await w.observed.refresh_sandbox(ref(), sandbox)
            await w.observed.refresh_container(ref(), container, sandbox)
        before = len(w.runtime.calls)
        await asyncio.sleep(5)
        assert calls_of(w.runtime, before) == []


class SlowRuntime(FakeRuntime):
    """Its answers take their time on the way: those about pods three seconds, those about containers one."""

    async def read_pod(self, uid: PodUID) -> ObservedPod | None:
        answer = await super().read_pod(uid)
        await asyncio.sleep(3)
        return answer

    async def container_status(self, container: ContainerID, sandbox: SandboxID | None = None) -> ObservedContainer:
        answer = await super().container_status(container, sandbox)
        await asyncio.sleep(1)
        return answer


async def test_an_exit_told_while_the_id_was_not_known_yet_is_looked_at_once_it_is() -> None:
    async with world(SlowRuntime()) as w:
        await asyncio.sleep(2)
        with w.observed.changing(ref().uid):
            uid, sandbox, container = await start_pod(w.runtime)
            await w.observed.refresh_sandbox(ref(), sandbox)
            reading = asyncio.create_task(w.observed.refresh_container(ref(), container, sandbox))
            await asyncio.sleep(0.1)
            w.runtime.kill(container, code=3)
            pod = await reading
            assert pod is not None
            assert pod.containers[0].phase is ContainerPhase.RUNNING
        await asyncio.sleep(4)
        pod = w.observed.get(uid)
        assert pod is not None
        assert pod.containers[0].exit_code == 3


async def test_a_list_for_a_stranger_waits_for_own_changes() -> None:
    async with world() as w:
        await asyncio.sleep(5)
        before = lists(w.runtime)
        with w.observed.changing(ref("other").uid):
            w.runtime.send_hint(RuntimeHint(id="stranger"))
            await asyncio.sleep(10)
            assert lists(w.runtime) == before
        await asyncio.sleep(2)
        assert lists(w.runtime) == before + 1


async def test_another_container_of_a_pod_that_is_being_changed_is_followed_as_ever() -> None:
    async with world() as w:
        uid, _, container = await start_pod(w.runtime)
        await w.observed.refresh(uid)
        with w.observed.changing(uid):
            w.runtime.kill(container, code=7)
            await asyncio.sleep(0.1)
            pod = w.observed.get(uid)
            assert pod is not None
            assert pod.containers[0].exit_code == 7


async def test_a_change_that_broke_off_leaves_the_pod_unsettled_until_it_is_read() -> None:
    async with world() as w:
        uid, _, _ = await start_pod(w.runtime)
        await w.observed.refresh(uid)
        with pytest.raises(RuntimeUnavailable), w.observed.changing(uid):
            raise RuntimeUnavailable("CreateContainer", "gone")
        assert not w.observed.settled(uid)
        await asyncio.sleep(0.1)
        await w.observed.refresh(uid)
        assert w.observed.settled(uid)


async def test_a_slow_read_of_the_whole_pod_does_not_hide_a_part_read_meanwhile() -> None:
    async with world(SlowRuntime()) as w:
        await asyncio.sleep(2)
        whole = asyncio.create_task(w.observed.refresh(ref().uid))
        await asyncio.sleep(0.1)
        with w.observed.changing(ref().uid):
            _, sandbox, container = await start_pod(w.runtime)
            await w.observed.refresh_sandbox(ref(), sandbox)
            await w.observed.refresh_container(ref(), container, sandbox)
        pod = await whole
        assert pod is not None
        assert [s.id for s in pod.sandboxes] == [sandbox]
        assert [c.id for c in pod.containers] == [container]


async def test_hints_about_what_an_own_call_changes_wait_for_its_own_read() -> None:
    async with world() as w:
        uid, _, container = await start_pod(w.runtime)
        await w.observed.refresh(uid)
        await asyncio.sleep(2)
        before = len(w.runtime.calls)
        with w.observed.changing(uid, container):
            await w.runtime.stop_container(container, 5)
            await asyncio.sleep(1)
            await w.observed.refresh_container(ref(), container)
        await asyncio.sleep(1)
        assert calls_of(w.runtime, before) == [Verb.STOP_CONTAINER, Verb.CONTAINER_STATUS]


async def test_a_hint_that_waited_is_followed_when_the_own_read_did_not_show_it() -> None:
    async with world() as w:
        uid, _, container = await start_pod(w.runtime)
        await w.observed.refresh(uid)
        with w.observed.changing(uid, container):
            await w.observed.refresh_container(ref(), container)
            w.runtime.kill(container, code=9)
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.1)
        pod = w.observed.get(uid)
        assert pod is not None
        assert pod.containers[0].exit_code == 9
