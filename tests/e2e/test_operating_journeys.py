"""What people type to look at a kubelet: its endpoints, metrics, profiles and log level, and the question that each of
them is asked for, put to glasslet. docs/howto/from-kubelet-commands.md goes the same ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.test_api_pods import wait_until
from tests.e2e.test_stops import glasslet
from tests.fakes.agent import FOR_EVER, NODE, Agent, agent_on, busybox_pod, free_port
from tests.fakes.containerd import PrivateContainerd

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

METRICS = (
    *("kubelet_running_pods", "kubelet_running_containers", "kubelet_node_name"),
    *("kubelet_pleg_relist_duration_seconds", "kubelet_pleg_relist_interval_seconds"),
    *("kubelet_pod_start_duration_seconds", "kubelet_pod_worker_duration_seconds"),
    *("kubelet_runtime_operations_total", "kubelet_runtime_operations_duration_seconds"),
    "kubelet_http_requests_total",
)
"""Those of the usual dashboards that have a value on a node where nothing ever failed."""


@pytest.fixture
def read_only_port() -> int:
    return free_port()


@pytest.fixture
def agent(containerd: PrivateContainerd, tmp_path: Path, read_only_port: int) -> Iterator[Agent]:
    access = {"webhook": {"enabled": False}, "anonymous": {"enabled": True}}
    with agent_on(containerd, tmp_path, authentication=access, readOnlyPort=read_only_port) as running:
        yield running


@asynccontextmanager
async def asking(agent: Agent) -> Any:
    """A function for requests to the HTTPS port."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:

        async def ask(path: str, method: str = "GET", body: str | None = None) -> tuple[int, bytes]:
            address = f"https://127.0.0.1:{agent.port}{path}"
            async with session.request(method, address, data=body) as answer:
                return answer.status, await answer.read()

        yield ask


async def web(agent: Agent) -> str:
    """A pod that runs; its name."""
    await agent.wait_until_ready()
    agent.put(busybox_pod("web", "echo served; " + FOR_EVER))
    await agent.wait_for(lambda rows: bool(rows.get("web", {}).get("isReady")))
    return f"web-{NODE}"


async def test_the_endpoints_of_a_kubelet_answer(agent: Agent, read_only_port: int) -> None:
    name = await web(agent)
    async with asking(agent) as ask:
        for path in (
            "/healthz",
            "/metrics/cadvisor",
            "/metrics/probes",
            "/metrics/resource",
            "/runningpods/",
            "/logs/",
        ):
            assert (await ask(path))[0] == 200, path
        pods = json.loads((await ask("/pods"))[1])["items"]
        assert [pod["metadata"]["name"] for pod in pods] == [name]
        summary = json.loads((await ask("/stats/summary"))[1])
        assert summary["node"]["nodeName"] == NODE
        assert (await ask(f"/containerLogs/default/{name}/main"))[1] == b"served\n"
        status, output = await ask(f"/run/default/{name}/main?cmd=echo%20inside", "POST")
        assert (status, output) == (200, b"inside\n")
        metrics = (await ask("/metrics"))[1].decode()
        assert [one for one in METRICS if f"\n{one}" not in metrics] == []
    async with aiohttp.ClientSession() as session:
        for port, path in ((agent.healthz_port, "/healthz"), (read_only_port, "/metrics"), (read_only_port, "/pods")):
            async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                assert answer.status == 200


async def test_profiles_and_the_log_level_are_had_from_the_running_agent(agent: Agent) -> None:
    await web(agent)
    async with asking(agent) as ask:
        for path in ("/debug/pprof/profile?seconds=1", "/debug/pprof/heap?seconds=1"):
            status, profile = await ask(path)
            assert status == 200, path
            assert profile[:2] == b"\x1f\x8b", path
        status, stacks = await ask("/debug/pprof/goroutine?debug=2")
        assert status == 200, stacks
        assert b"glasslet/daemon.py" in stacks
        assert (await ask("/debug/flags/v", "PUT", "6")) == (200, b"successfully set klog.logging.verbosity to 6\n")


def says(agent: Agent, name: str, cause: str) -> bool:
    """Whether the first sentence about the pod names the cause."""
    return cause in glasslet(agent, "why", f"{name}-{NODE}").partition("\n\n")[0]


async def test_the_usual_troubles_are_answered_by_one_question(agent: Agent) -> None:
    await agent.wait_until_ready()
    crashing = busybox_pod("crashes", "echo no configuration; exit 3")
    unknown = busybox_pod("unknown")
    unknown["spec"]["containers"][0]["image"] = "127.0.0.1:1/none:1"
    unready = busybox_pod("unready")
    never = {"exec": {"command": ["false"]}, "periodSeconds": 1}
    unready["spec"]["containers"][0]["readinessProbe"] = never
    for manifest in (crashing, unknown, unready):
        agent.put(manifest)
    causes = {"crashes": "exited with code 3", "unknown": "connection refused", "unready": "readiness probe"}
    for name, cause in causes.items():
        wait_until(partial(says, agent, name, cause))
    assert glasslet(agent, "why", "node").startswith(f"{NODE} is ready: ")
    listed = glasslet(agent, "why")
    assert all(f"{name}-{NODE}" in listed for name in ("crashes", "unknown", "unready"))
    assert "RunPodSandbox" in glasslet(agent, "trace", f"unready-{NODE}")


async def test_a_pods_start_is_a_file_for_perfetto(agent: Agent, tmp_path: Path) -> None:
    name = await web(agent)
    file = tmp_path / "start.json"
    assert glasslet(agent, "trace", name, "--perfetto", str(file)) == ""
    events = json.loads(file.read_text())["traceEvents"]
    tracks = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    drawn = {(tracks[one["tid"]], one["name"]) for one in events if one["ph"] == "X"}
    assert ("sandbox", "sandbox") in drawn
    assert ("sandbox: waits", "RunPodSandbox") in drawn
