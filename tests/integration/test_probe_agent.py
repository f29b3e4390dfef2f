"""Probes of a whole agent as a process: killed and started again, asked by people and by Prometheus."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.agent import NODE, Agent, agent_on, busybox_pod, free_port
from tests.fakes.containerd import PrivateContainerd

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

HTTPD = "mkdir /www; echo ok > /www/ready; httpd -p 8080 -h /www; trap 'exit 0' TERM; while :; do sleep 1 & wait; done"


def served_pod(name: str, path: str = "/ready", **numbers: int) -> dict[str, Any]:
    """A web server with a readiness probe each second, with time enough on a machine that has none."""
    pod = busybox_pod(name, HTTPD)
    probe = {"httpGet": {"path": path, "port": 8080}, "periodSeconds": 1, "timeoutSeconds": 30, **numbers}
    pod["spec"]["containers"][0]["readinessProbe"] = probe
    return pod


async def description(agent: Agent, name: str) -> dict[str, Any]:
    answer = await agent.ask(f"/glass/v1/pods/default/{name}-{NODE}")
    assert isinstance(answer, dict)
    return answer


async def until_remembered(agent: Agent, container: str) -> None:
    """Until the file holds that this instance is ready, in which a next agent reads it."""
    file = agent.root / "glasslet" / "probes"
    async with asyncio.timeout(60):
        while not (file.exists() and container.encode() in file.read_bytes()):
            await asyncio.sleep(0.05)


async def test_a_killed_agent_comes_back_without_a_flap(containerd: PrivateContainerd, tmp_path: Path) -> None:
    """The next agent says Ready before its first probe. With a period of an hour, that probe never comes."""
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready()
        agent.put(served_pod("web"))
        # The first agent probes at once when the container runs, unless chance holds it back: ten seconds at most.
        await agent.wait_for(lambda rows: rows.get("web", {}).get("isReady", False))
        container = (await description(agent, "web"))["containers"][0]["id"].removeprefix("containerd://")
        await until_remembered(agent, container)
        for _ in range(3):
            agent.kill()
            agent.start()
            seen: list[bool] = []

            def ready(rows: dict[str, Any], seen: list[bool] = seen) -> bool:
                if "web" in rows and rows["web"]["phase"] == "Running":
                    seen.append(rows["web"]["isReady"])
                return len(seen) >= 10

            await agent.wait_for(ready)
            assert all(seen), seen
        told = [row["text"] for row in (await description(agent, "web"))["timeline"]]
        assert not [text for text in told if "True -> False" in text], told


async def test_a_damaged_memory_is_a_finding(containerd: PrivateContainerd, tmp_path: Path) -> None:
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready()
        agent.put(served_pod("web"))
        await agent.wait_for(lambda rows: rows.get("web", {}).get("isReady", False))
        agent.terminate()
        file = agent.root / "glasslet" / "probes"
        os.truncate(file, file.stat().st_size - 1)
        agent.start()
        await agent.wait_for(lambda rows: rows.get("web", {}).get("isReady", False))
        assert re.search(r"probe results of the last run are lost.*checksum does not match", agent.log.read_text())
        assert (agent.root / "glasslet" / "probes.damaged").exists()


async def test_people_and_prometheus_see_what_probes_say(containerd: PrivateContainerd, tmp_path: Path) -> None:
    port = free_port()
    with agent_on(containerd, tmp_path, readOnlyPort=port) as agent:
        await agent.wait_until_ready()
        agent.put(served_pod("bad", "/nothing?token=secret"))
        rows = await agent.wait_for(lambda rows: "3 of 3 failures" in rows.get("bad", {}).get("now", ""))
        assert rows["bad"]["now"] == "readiness probe http :8080/nothing: status 404, 3 of 3 failures"
        described = await description(agent, "bad")
        newest = described["probes"][-1]
        assert (newest["kind"], newest["verdict"], newest["note"]) == ("readiness", "failure", "status 404")
        assert 0 < newest["connectMs"] + newest["firstByteMs"] <= newest["totalMs"] + 1
        (wait,) = [wait for wait in described["waits"] if wait["kind"] == "probe"]
        assert wait["on"].startswith("readiness http :8080/nothing")
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}/metrics/probes") as answer,
        ):
            text = await answer.text()
        pattern = r'prober_probe_total\{probe_type="Readiness",result="failed",container="main",pod="bad-node-a".* \d+'
        assert re.search(pattern, text), text
        assert "secret" not in str(described)
        agent.remove("bad")
        await agent.wait_for(lambda rows: "bad" not in rows)
