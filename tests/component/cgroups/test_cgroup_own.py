"""Where the agent and the machine's other processes are kept. On plain folders: no process is really moved."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from glasslet.resources.own_cgroup import OwnCgroup
from tests.component.cgroup_world import TurnTaking
from tests.fakes.background import in_background
from tests.fakes.cgroups import FoldersV1

pytestmark = pytest.mark.looptime


async def test_processes_of_the_root_are_moved_but_init_and_kernel_threads(tmp_path: Path) -> None:
    # config-fields: "systemCgroups: Cgroup for other non-kernel processes"
    machine = FoldersV1(tmp_path)
    ours, nobody = os.getpid(), 2**22 + 1
    machine.set("devices", "/", "cgroup.procs", f"1\n{nobody}\n{ours}\n")
    own = OwnCgroup(tree=machine.tree, threads=TurnTaking(), set_oom_score=lambda: None, system="/system/")
    await own.keep()
    moved = {value for path, value in machine.writes if path.endswith("/system/cgroup.procs")}
    assert moved == {str(ours)}


async def test_the_oom_score_is_set_again_every_five_minutes(tmp_path: Path) -> None:
    # behaviours.md §16: "kubelet -999, re-applied every 5 min."
    times: list[float] = []
    loop = asyncio.get_running_loop()
    own = OwnCgroup(tree=None, threads=TurnTaking(), set_oom_score=lambda: times.append(round(loop.time())))
    async with in_background(own.run):
        await asyncio.sleep(601)
    assert times == [0, 300, 600]


async def test_an_agent_in_a_container_stays_where_its_runtime_put_it(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path)
    own = OwnCgroup(
        tree=machine.tree, threads=TurnTaking(), set_oom_score=lambda: None, agent="/kubelet", on_host=lambda: False
    )
    await own.keep()
    assert machine.writes == []
    assert not machine.tree.exists("/kubelet")
