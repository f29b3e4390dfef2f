"""Random lives of pods: whatever happens in whatever order, no container runs twice, none starts after its end was
requested, and in the end the world is what the sources want."""

from __future__ import annotations

import asyncio
import random

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.exchange.facts import StatusOverride
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import NameReserved, RuntimeRejected, RuntimeTimeout, RuntimeUnavailable
from tests.builders.pod import api_pod, container, deleted, pod, sidecar
from tests.component.pod_agent import Agent, Node, running_agent
from tests.fakes.programs import Program, exits

pytestmark = pytest.mark.looptime

ERRORS = (RuntimeUnavailable, RuntimeTimeout, RuntimeRejected, NameReserved)
MUTATING = (
    Verb.RUN_POD_SANDBOX,
    Verb.CREATE_CONTAINER,
    Verb.START_CONTAINER,
    Verb.STOP_CONTAINER,
    Verb.STOP_POD_SANDBOX,
    Verb.REMOVE_CONTAINER,
)
READING = (Verb.LIST_POD_SANDBOX, Verb.LIST_CONTAINERS, Verb.IMAGE_STATUS)


class Life:
    """Throws things at an agent, and remembers what the sources want."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.node = Node()
        runtime = self.node.runtime
        runtime.program("setup", exits(1, after=0.5), exits(0, after=0.5), exits(0))
        runtime.program("main", Program(term_takes=0.5), exits(1, after=3), Program())
        for verb in (*MUTATING, *READING):
            runtime.latency[verb] = self.dice.choice((0, 0, 0.01, 0.2))
        self.wanted: dict[str, Pod] = {}
        self.killed: set[str] = set()
        self.number = 0

    async def happen(self, agent: Agent) -> None:
        """One thing."""
        what = self.dice.choice((self.add, self.remove, self.crash, self.fail, self.wreck, self.kill, self.rest))
        what(agent)
        await asyncio.sleep(self.dice.choice((0, 0.001, 0.05, 1, 7)))

    def add(self, agent: Agent) -> None:
        if len(self.wanted) >= 4:
            return
        self.number += 1
        make = self.dice.choice((pod, api_pod))
        one = make(
            container("main"),
            container("second"),
            init=(container("setup"), sidecar()),
            uid=f"uid-{self.number}",
            name=f"pod-{self.number}",
            termination_grace_period_seconds=self.dice.choice((1, 3)),
        )
        self.wanted[one.metadata.uid] = one
        agent.add(one)

    def remove(self, agent: Agent) -> None:
        if self.wanted:
            uid = self.dice.choice(sorted(self.wanted))
            one = self.wanted.pop(uid)
            self.killed.discard(uid)
            if self.dice.random() < 0.3:
                agent.delete(deleted(one, grace=2))
            agent.remove(one)

    def kill(self, agent: Agent) -> None:
        if self.wanted and self.dice.random() < 0.3:
            uid = self.dice.choice(sorted(self.wanted))
            self.killed.add(uid)
            agent.workers.kill(PodUID(uid), StatusOverride(phase="Failed", reason="Evicted"), 1)

    def crash(self, agent: Agent) -> None:
        running = [c.id for c in agent.runtime.containers.values() if c.running]
        if running:
            agent.runtime.kill(self.dice.choice(running), code=self.dice.choice((0, 1, 137)))

    def wreck(self, agent: Agent) -> None:
        ready = [s.id for s in agent.runtime.sandboxes.values() if s.ready]
        if ready and self.dice.random() < 0.3:
            agent.runtime.kill_sandbox(self.dice.choice(ready))

    def fail(self, agent: Agent) -> None:
        verb = self.dice.choice(MUTATING + READING)
        kind = self.dice.choice(ERRORS if verb in MUTATING[:2] else ERRORS[:3])
        agent.runtime.fail(verb, kind(verb, "chance"), times=self.dice.choice((1, 2)))

    def rest(self, agent: Agent) -> None:
        """Nothing happens."""

    def check(self, agent: Agent) -> None:
        """What must hold at any time."""
        running = [(c.uid, c.name) for c in agent.runtime.containers.values() if c.running]
        assert len(running) == len(set(running)), f"runs twice: {sorted(running)}"

    def as_wanted(self, agent: Agent) -> bool:
        """Whether the world is what the sources want."""
        for uid in self.wanted:
            expected = [] if uid in self.killed else ["main", "second", "side"]
            if sorted(agent.runtime.running(uid)) != expected:
                return False
        return {s.uid for s in agent.runtime.sandboxes.values()} <= self.wanted.keys()


@pytest.mark.parametrize("seed", range(40))
async def test_any_life_ends_in_what_the_sources_want(seed: int) -> None:
    life = Life(seed)
    for _ in range(life.dice.randint(1, 3)):
        async with running_agent(life.node) as agent:
            agent.sources_ready = False
            for one in life.wanted.values():
                agent.add(one)
            life.killed.clear()
            agent.sources_ready = True
            for _ in range(25):
                await life.happen(agent)
                life.check(agent)
    for verb in (*MUTATING, *READING):
        life.node.runtime.heal(verb)
    async with running_agent(life.node) as agent:
        agent.sources_ready = False
        for one in life.wanted.values():
            agent.add(one)
        life.killed.clear()
        agent.sources_ready = True
        await agent.until(lambda: life.as_wanted(agent), seconds=600, step=0.25)
        await asyncio.sleep(30)
        life.check(agent)


@pytest.mark.parametrize("moment", range(45))
async def test_nothing_is_made_or_started_for_a_pod_after_its_removal(moment: int) -> None:
    """The pod needs about 2 s to come up, call by call; it is removed anywhere in between."""
    node = Node()
    node.runtime.program("setup", exits(0))
    for verb in (*MUTATING, *READING):
        node.runtime.latency[verb] = 0.1
    one = pod(container("main"), container("second"), init=(container("setup"), sidecar()))
    async with running_agent(node) as agent:
        agent.add(one)
        await asyncio.sleep(moment * 0.06 + 0.01)
        agent.remove(one)
        await asyncio.sleep(0.001)
        known = dict.fromkeys(node.runtime.containers)
        begun = {c.id for c in node.runtime.containers.values() if c.started_at is not None}
        while agent.census.knows(PodUID(one.metadata.uid)):
            now = node.runtime.containers.values()
            assert {c.id for c in now} <= known.keys()
            assert {c.id for c in now if c.started_at is not None} <= begun
            await asyncio.sleep(0.01)
        assert node.runtime.containers == {}
        assert node.runtime.sandboxes == {}
