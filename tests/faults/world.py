"""What rows ask of the world: what the runtime really holds, what the agent says, what is left behind."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from datetime import datetime
from typing import Any

from glasslet.runtime.cri.connection import connect
from glasslet.runtime.model import ObservedPod
from tests.fakes.agent import NODE, Agent, Rows
from tests.fakes.containerd import PrivateContainerd, Silent
from tests.fakes.waits import WaitLog

Started = dict[str, tuple[str, datetime | None]]


async def in_runtime(runtime: PrivateContainerd) -> dict[str, ObservedPod]:
    """What containerd holds, asked directly, by pod name without the node's."""
    connection = await connect(runtime.endpoint, recorder=WaitLog(), metrics=Silent())
    try:
        listed = await connection.runtime.list_pods()
        pods = await asyncio.gather(*(connection.runtime.read_pod(pod.uid) for pod in listed))
        return {pod.name.removesuffix(f"-{NODE}"): pod for pod in pods if pod is not None}
    finally:
        await connection.close()


async def started(runtime: PrivateContainerd, *names: str) -> Started:
    """Which container of these pods runs and since when: as long as this does not change nothing was restarted."""
    found = await in_runtime(runtime)
    return {
        f"{name}/{c.name}": (c.id, c.started_at)
        for name in names
        for c in found[name].containers
        if c.phase == "running"
    }


async def running_twice(runtime: PrivateContainerd) -> list[str]:
    """Containers of which two instances run, and pods with two ready sandboxes."""
    wrong = []
    for name, pod in (await in_runtime(runtime)).items():
        mains = [c.name for c in pod.containers if c.phase == "running"]
        if len(mains) != len(set(mains)) or sum(s.ready for s in pod.sandboxes) > 1:
            wrong.append(name)
    return wrong


def ready(*names: str) -> Any:
    """For `Agent.wait_for`: these pods are."""
    return lambda rows: all(rows.get(name, {}).get("ready") == 1 for name in names)


def gone(*names: str) -> Any:
    """For `Agent.wait_for`: the agent knows nothing of these pods (and does answer)."""
    return lambda rows: bool(rows) and not any(name in rows for name in names)


def restarts(rows: Rows, *names: str) -> dict[str, int]:
    """Those that were restarted."""
    return {name: rows[name]["restarts"] for name in names if rows[name]["restarts"]}


def healthz(agent: Agent) -> int:
    """The answer of the health port; 0: nobody answers."""
    return health_of(agent)[0]


def health_of(agent: Agent, path: str = "/healthz", *, port: int | None = None) -> tuple[int, str]:
    """Status and text of an answer of the health port, or of another one."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port or agent.healthz_port}{path}", timeout=60) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""
