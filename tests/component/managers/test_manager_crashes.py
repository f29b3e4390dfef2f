"""An agent killed between each two steps of giving out CPUs and memory: no CPU is two pods', nothing stays behind."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path

from glasslet.api.container import Container
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.managers.cpu_sets import CPUs, read_cpu_text
from glasslet.managers.needs import containers_of
from glasslet.runtime.spec import Resources
from tests.builders.pod import container, pod
from tests.component.manager_world import ManagerWorld, guaranteed, sized
from tests.component.volume_world import Killed, SteppingThreads, Steps

QUIET = pod(container(), uid="quiet", name="quiet")
FIRST = guaranteed("first", "2", init=(sized("init", "4"), sized("side", "2", restart_policy="Always")))
SECOND, THIRD = guaranteed("second", "4"), guaranteed("third", "6", "10Gi")


class Node:
    """What outlives an agent: running containers with their CPUs, and what the sources want."""

    def __init__(self) -> None:
        self.wanted: dict[str, Pod] = {}
        self.running: dict[tuple[str, str], CPUs] = {}
        self.through: set[tuple[str, str]] = set()
        """Init containers that have run to their end."""

    def alone(self) -> Mapping[tuple[str, str], CPUs]:
        """The running containers that were given CPUs of their own."""
        return {key: cpus for key, cpus in self.running.items() if key[0] != "quiet"}

    def check(self) -> None:
        for one, other in combinations(self.alone().items(), 2):
            assert not one[1] & other[1], f"{one} and {other} have the same CPUs"


class Agent(ManagerWorld):
    """One agent on the node; a step before and after each thing that outlives it."""

    def __init__(self, folder: Path, node: Node, steps: Steps) -> None:
        super().__init__(folder, threads=SteppingThreads(steps))
        self.node, self.steps = node, steps

    async def begin(self) -> None:
        """Takes up what the earlier agent left: every pod that the sources want is admitted, oldest first."""
        for uid, name in self.node.running:
            self.running.setdefault(uid, []).append(name)
        self.living = dict(self.node.wanted)
        await self.start()
        for one in self.node.wanted.values():
            assert self.topology.claim(one, list(self.living.values())) is None
        for (uid, name), cpus in self.node.alone().items():
            assert self.cpus.own(uid, name) == cpus, "a running container keeps its CPUs"

    async def come(self, it: Pod) -> None:
        """A source gives the pod; it is admitted, and its containers run."""
        uid = it.metadata.uid
        self.node.wanted[uid] = self.living[uid] = it
        assert self.topology.claim(it, list(self.living.values())) is None
        self.steps.step()
        await self.run(it)
        await self.settle()

    async def run(self, it: Pod) -> None:
        """Makes the containers that lack."""
        for role, one in containers_of(it):
            key = it.metadata.uid, one.name
            if key in self.node.through:
                continue
            if key not in self.node.running:
                await self._make(it, one)
            if role == "init":
                self._over(*key)
                self.node.through.add(key)
                self.steps.step()

    async def _make(self, it: Pod, one: Container) -> None:
        share = await self.managers.share(it, one)
        self.steps.step()
        self.node.running[it.metadata.uid, one.name] = read_cpu_text(share.cpus)
        self.running.setdefault(it.metadata.uid, []).append(one.name)
        self.node.check()
        self.steps.step()

    async def go(self, uid: str) -> None:
        """No source has the pod any more; its containers end, and its share is given back."""
        del self.node.wanted[uid], self.living[uid]
        self.steps.step()
        for name in list(self.running.get(uid, ())):
            self._over(uid, name)
            self.steps.step()
        await self.settle()

    def _over(self, uid: str, name: str) -> None:
        del self.node.running[uid, name]
        self.running[uid].remove(name)

    async def settle(self) -> None:
        """One run of the reconciler: afterwards those that share stay off the CPUs of others."""
        self.topology.tidy(())
        await self.cpus.save()
        await self.reconciler.reconcile()
        taken = self.cpus.state.exclusive()
        assert all(not cpus & taken for (uid, _), cpus in self.node.running.items() if uid == "quiet")

    async def update(self, container_id: ContainerID, resources: Resources) -> None:
        self.steps.step()
        uid, _, name = str(container_id).partition("/")
        self.node.running[uid, name] = read_cpu_text(resources.cpuset_cpus)
        self.steps.step()


async def live(agent: Agent) -> None:
    """Pods come and go, and get CPUs and memory that others had."""
    await agent.begin()
    await agent.come(QUIET)
    await agent.come(FIRST)
    await agent.come(SECOND)
    await agent.go("first")
    await agent.come(THIRD)
    await agent.go("second")


async def killed_and_taken_up(folder: Path, at: int) -> bool:
    """Two agents one after the other, the first killed before that step; whether it came so far."""
    folder.mkdir()
    node, steps = Node(), Steps(at)
    with suppress(Killed):
        await live(Agent(folder, node, steps))
    node.check()
    second = Agent(folder, node, Steps())
    await second.begin()
    for one in list(node.wanted.values()):
        await second.run(one)
    # What a pod left running that no source wants any more ends, as orphans do.
    for uid, name in [key for key in node.running if key[0] not in node.wanted]:
        second._over(uid, name)
    await second.settle()
    node.check()
    for uid in list(node.wanted):
        await second.go(uid)
    await second.memory.save()
    fresh = ManagerWorld(folder)
    assert (second.cpus.state, second.memory.state) == (fresh.cpus.state, fresh.memory.state)
    third = await ManagerWorld(folder).start()
    assert third.record.findings() == []
    assert (third.cpus.state, third.memory.state) == (second.cpus.state, second.memory.state)
    return steps.dead


async def test_an_agent_killed_at_any_step_gives_no_cpu_twice_and_leaves_nothing(tmp_path: Path) -> None:
    at = 0
    while await killed_and_taken_up(tmp_path / str(at), at):
        at += 1
    assert at > 60
