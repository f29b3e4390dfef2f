"""Pods' cgroups come, stay and go: agents that restart, processes that are left, orphans."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from glasslet.api.pod_ref import pod_ref
from glasslet.resources.layout import CgroupNameInvalid
from glasslet.resources.orphan_cgroups import OrphanCgroups
from tests.component.cgroup_world import KnownPods, World, best_effort, burstable
from tests.fakes.background import in_background

pytestmark = pytest.mark.looptime

POD = "/kubepods/burstable/podu1"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "cgroups")


def findings(world: World) -> tuple[str, ...]:
    record = world.record.of("u1")
    assert record is not None
    return record.findings()


async def test_the_sandbox_is_told_where_the_pods_cgroup_is(world: World) -> None:
    assert await world.pods.ensure(burstable("u1")) == POD
    assert world.machine.tree.exists(POD)
    assert world.shares(POD) == "512"


async def test_values_are_written_once(world: World) -> None:
    pod = burstable("u1")
    for _ in range(3):
        await world.pods.ensure(pod)
    assert world.writes_to(f"{POD}/cpu.shares") == ["512"]


async def test_a_cgroup_that_an_agent_did_not_live_to_fill_is_filled_by_the_next(world: World) -> None:
    """The Go kubelet takes one that is there for done."""
    world.machine.tree.create(POD)
    await world.agent().ensure(burstable("u1"))
    assert world.shares(POD) == "512"


async def test_a_cgroup_that_somebody_removed_is_lost_and_made_again(world: World) -> None:
    pod = burstable("u1")
    await world.pods.ensure(pod)
    assert not world.pods.lost(pod)
    world.machine.tree.remove(POD)
    assert world.pods.lost(pod)
    await world.pods.ensure(pod)
    assert not world.pods.lost(pod)
    assert world.shares(POD) == "512"


async def test_a_limit_that_the_kernel_refuses_is_told_and_the_pod_runs(world: World) -> None:
    world.machine.refused["cpu.shares"] = errno.EINVAL
    assert await world.pods.ensure(burstable("u1")) == POD
    assert "limits of the pod's cgroup not set" in findings(world)[0]


async def test_limits_that_are_set_after_all_are_no_finding_any_more(world: World) -> None:
    world.machine.refused["cpu.shares"] = errno.EINVAL
    await world.pods.ensure(burstable("u1"))
    world.machine.refused.clear()
    await world.pods.adjust(burstable("u1"))
    assert findings(world) == ()


async def test_of_a_cgroup_that_is_gone_nothing_is_found(world: World) -> None:
    world.machine.refused["cpu.shares"] = errno.EINVAL
    await world.pods.ensure(burstable("u1"))
    await world.pods.remove(pod_ref(burstable("u1")))
    assert findings(world) == ()


async def test_a_cgroup_that_cannot_be_made_is_an_error(world: World, tmp_path: Path) -> None:
    (tmp_path / "cgroups/memory/kubepods").write_text("in the way")
    with pytest.raises(OSError, match="kubepods"):
        await world.pods.ensure(burstable("u1"))


async def test_a_uid_that_is_no_name_is_an_error_and_touches_nothing(world: World) -> None:
    with pytest.raises(CgroupNameInvalid):
        await world.pods.ensure(burstable("../../x"))
    assert not world.pods.lost(burstable("../../x"))
    assert world.machine.writes == []


async def test_a_removed_pod_leaves_nothing(world: World, tmp_path: Path) -> None:
    pod = burstable("u1")
    await world.pods.ensure(pod)
    world.machine.make(str(tmp_path / f"cgroups/memory{POD}/container"))
    await world.pods.remove(pod_ref(pod))
    assert not list((tmp_path / "cgroups").glob("*/kubepods/burstable/podu1"))


async def test_the_next_agent_removes_a_pod_whose_class_it_does_not_know(world: World, tmp_path: Path) -> None:
    pod = best_effort("u1")
    await world.pods.ensure(pod)
    await world.agent().remove(pod_ref(pod))
    assert not list((tmp_path / "cgroups").glob("*/kubepods/besteffort/podu1"))


async def test_removing_what_is_not_there_is_fine(world: World) -> None:
    await world.pods.remove(pod_ref(burstable("u1")))


async def test_a_cgroup_that_stays_busy_is_an_error_after_about_a_second(world: World, tmp_path: Path) -> None:
    # behaviours.md §4: "pod cgroup removed (remaining processes killed, up to 5 tries)"
    pod = burstable("u1")
    await world.pods.ensure(pod)
    world.machine.held.add(str(tmp_path / f"cgroups/memory{POD}"))
    begin = asyncio.get_running_loop().time()
    with pytest.raises(OSError, match="failed to delete cgroup paths"):
        await world.pods.remove(pod_ref(pod))
    assert 0.5 < asyncio.get_running_loop().time() - begin < 2
    world.machine.held.clear()
    await world.pods.remove(pod_ref(pod))


async def test_a_process_that_cannot_be_killed_is_named(world: World) -> None:
    pod = burstable("u1")
    await world.pods.ensure(pod)
    world.machine.set("memory", POD, "cgroup.procs", "0\n")
    with pytest.raises(PermissionError, match="failed to kill all the processes"):
        await world.pods.remove(pod_ref(pod))


async def test_work_on_cgroups_is_counted(world: World) -> None:
    pod = burstable("u1")
    await world.pods.ensure(pod)
    await world.pods.reduce(POD)
    await world.pods.remove(pod_ref(pod))
    assert world.durations.kinds == ["create", "update", "destroy"]


# -- orphans -------------------------------------------------------------------------------------------------------


async def test_the_cgroup_of_a_pod_that_nobody_knows_is_removed(world: World) -> None:
    known = KnownPods()
    known.living = {"u2"}
    for uid in ("u1", "u2"):
        await world.pods.ensure(burstable(uid))
    cleaner = OrphanCgroups(cgroups=world.agent(), pods=known)
    async with in_background(cleaner.run):
        await asyncio.sleep(1)
        assert set(await world.pods.found()) == {"u2"}


async def test_nothing_is_an_orphan_before_all_sources_have_told_their_pods(world: World) -> None:
    # behaviours.md §1: "All sources must be ready before pod directories, unknown containers, cgroups or sandboxes are
    # removed."
    known = KnownPods()
    known.ready = False
    await world.pods.ensure(burstable("u1"))
    async with in_background(OrphanCgroups(cgroups=world.agent(), pods=known).run):
        await asyncio.sleep(60)
        assert set(await world.pods.found()) == {"u1"}
        known.ready = True
        await asyncio.sleep(60)
        assert not await world.pods.found()


async def test_an_orphan_with_volumes_is_kept_with_the_least_cpu(world: World) -> None:
    # behaviours.md §1: "The cgroup of an orphan pod whose volumes are still mounted is kept and only gets the minimum
    # CPU shares."
    known = KnownPods()
    known.with_volumes = {"u1"}
    await world.pods.ensure(burstable("u1"))
    async with in_background(OrphanCgroups(cgroups=world.agent(), pods=known).run):
        await asyncio.sleep(60)
        assert world.shares(POD) == "2"
        assert world.writes_to(f"{POD}/cpu.shares") == ["512", "2"]
        known.with_volumes.clear()
        await asyncio.sleep(60)
        assert not await world.pods.found()


async def test_a_pod_that_comes_back_while_its_cgroup_is_cleaned_up_keeps_it(world: World) -> None:
    known = KnownPods()
    pod = burstable("u1")
    await world.pods.ensure(pod)
    found = await world.pods.found()
    known.living = {"u1"}
    uid, path = found.popitem()
    await world.pods.remove_orphan(uid, path, lambda: not known.alive(uid))
    assert not world.pods.lost(pod)


async def test_an_orphan_that_resists_does_not_save_the_others(world: World, tmp_path: Path) -> None:
    for uid in ("u1", "u2"):
        await world.pods.ensure(burstable(uid))
    world.machine.held.add(str(tmp_path / f"cgroups/memory{POD}"))
    await OrphanCgroups(cgroups=world.agent(), pods=KnownPods()).tidy()
    assert set(await world.pods.found()) == {"u1"}


async def test_what_is_not_a_pods_cgroup_is_left_alone(world: World) -> None:
    world.machine.tree.create("/kubepods/burstable/somebody")
    await OrphanCgroups(cgroups=world.pods, pods=KnownPods()).tidy()
    assert world.machine.tree.exists("/kubepods/burstable/somebody")


async def test_an_agent_may_end_at_any_await_of_making_and_removing(world: World) -> None:
    """Cancelled after n turns of the loop, for every n; the next agent makes it whole, or removes it whole."""
    pod = burstable("u1")
    for turns in range(12):
        agent = world.agent()
        work = asyncio.ensure_future(agent.ensure(pod) if turns % 2 else agent.remove(pod_ref(pod)))
        for _ in range(turns):
            await asyncio.sleep(0)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        successor = world.agent()
        await successor.ensure(pod)
        assert world.shares(POD) == "512"
        await successor.remove(pod_ref(pod))
        assert successor.lost(pod)
