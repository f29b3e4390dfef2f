"""One agent with a real runtime in which many pods are in trouble at once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp

from tests.fakes.agent import FOR_EVER, NODE, Agent, agent_on, busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane
from tests.fakes.registry import Registry
from tests.troubles.table import Plain, Trouble, fits, judge

PATIENCE = 60.0
"""Seconds until a trouble has its sentence: crashes and probes take their time."""


class World:
    """A running agent, its runtime, a registry, and a folder for what the troubles need."""

    def __init__(self, agent: Agent, containerd: PrivateContainerd, registry: Registry, folder: Path) -> None:
        self.agent = agent
        self.containerd = containerd
        self.registry = registry
        self.folder = folder

    def put(self, *troubles: Trouble) -> None:
        """Places the pods of these troubles."""
        for trouble in troubles:
            if trouble.pod is not None:
                self.agent.put(trouble.pod(self), f"{trouble.name}.yaml")

    def shows(self, trouble: Trouble, path: str = "") -> Plain:
        """Asks until the answer is the expected one, and demands of it what holds for all answers."""
        pod = self.pod(trouble)
        verdict = self.verdict_until(trouble, path or f"/pods/{pod}/why")
        judge(trouble, verdict, has_run=bool(path) or self.has_run(pod))
        return verdict

    def shows_among_all(self, trouble: Trouble) -> Plain:
        """Asks for all troubles of the node until one is the expected one."""
        until = time.monotonic() + PATIENCE
        while True:
            listed: list[Plain] = [one["verdict"] for one in (self.ask("/why") or {}).get("troubles", [])]
            if fitting := [verdict for verdict in listed if fits(trouble, verdict)]:
                judge(trouble, fitting[0], has_run=True)
                return fitting[0]
            assert time.monotonic() < until, listed
            time.sleep(0.2)

    def pod(self, trouble: Trouble) -> str:
        """The pod's full name: static pods carry the node's."""
        return f"default/{trouble.name}-{NODE}"

    def verdict_until(self, trouble: Trouble, path: str) -> Plain:
        """Asks until the answer is the expected one. Raises AssertionError with the last one."""
        until = time.monotonic() + PATIENCE
        while True:
            verdict = self.ask(path)
            if verdict is not None and fits(trouble, verdict):
                return verdict
            assert time.monotonic() < until, f"{trouble.name}: {verdict}\n{self.agent.tail_of_log(5)}"
            time.sleep(0.2)

    def has_run(self, pod: str) -> bool:
        """Whether any container of the pod ever ran."""
        found = self.ask(f"/pods/{pod}") or {}
        return any(
            one.get("state") in ("running", "terminated") or "lastExitCode" in one
            for one in found.get("containers", ())
        )

    def ask(self, path: str) -> Plain | None:
        """An answer of the agent, None while there is none."""
        with contextlib.suppress(aiohttp.ClientError, OSError):
            answer: Plain = asyncio.run(self.agent.ask(f"/glass/v1{path}"))
            return answer
        return None


@contextlib.contextmanager
def standalone_world(containerd: PrivateContainerd, folder: Path, **configuration: Any) -> Iterator[World]:
    """An agent without an API server, ready."""
    with Registry(folder) as registry, agent_on(containerd, folder, **configuration) as agent:
        asyncio.run(agent.wait_until_ready())
        yield World(agent, containerd, registry, folder)


class ClusterWorld(World):
    """An agent of a cluster: its pods come from a real API server."""

    def __init__(self, agent: Agent, plane: ControlPlane, containerd: PrivateContainerd, registry: Registry) -> None:
        super().__init__(agent, containerd, registry, agent.folder)
        self.plane = plane

    def put(self, *troubles: Trouble) -> None:
        """Creates the pods of these troubles."""
        made = [trouble.pod(self) for trouble in troubles if trouble.pod is not None]
        if made:
            self.plane.apply(*made)

    def pod(self, trouble: Trouble) -> str:
        """The pod's full name."""
        return f"default/{trouble.name}"


def bound_pod(name: str, shell: str = FOR_EVER, **spec: Any) -> Plain:
    """A pod that is bound to the node without a scheduler, so that the node itself judges it."""
    made = busybox_pod(name, shell, **{"automountServiceAccountToken": False, "nodeName": NODE, **spec})
    made["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    return made
