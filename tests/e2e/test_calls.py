"""What the agent's own code does for one pod, and did during its start: traced in a real agent on a real runtime."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.agent import NODE, Agent, agent_on, busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.real_collector import RealCollector, ancestors

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

Plain = dict[str, Any]
SECRET = "squirrel-7-password"


def glasslet(agent: Agent, *arguments: str) -> subprocess.Popen[str]:
    program = "import sys; from glasslet.cli.app import main; sys.argv[0] = 'glasslet'; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, "--root-dir", str(agent.root), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out


async def traced_start(agent: Agent, name: str) -> Plain:
    return await traced(agent, busybox_pod(name))


async def traced(agent: Agent, manifest: Plain) -> Plain:
    """The calls of a pod's start until it is Ready; the trace begins before the pod is there."""
    name = manifest["metadata"]["name"]
    tracing = glasslet(agent, "calls", f"default/{name}-{NODE}", "--until", "Ready", "-o", "json")
    assert tracing.stderr is not None
    assert "yet" in tracing.stderr.readline()
    await until_traced(agent, name)
    agent.put(manifest)
    answer: Plain = json.loads(output(tracing))
    return answer


async def until_traced(agent: Agent, name: str) -> None:
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(aiohttp.ClientResponseError):
                await agent.ask(f"/glass/v1/pods/default/{name}-{NODE}/calls")
                return
            await asyncio.sleep(0.02)


@pytest.fixture
async def agent(containerd: PrivateContainerd, tmp_path: Path) -> AsyncIterator[Agent]:
    with agent_on(containerd, tmp_path) as running:
        await running.wait_until_ready()
        yield running


async def test_the_start_of_a_pod_is_a_tree_of_the_agents_functions(agent: Agent) -> None:
    answer = await traced_start(agent, "web")
    assert not answer["active"]
    functions = {call["function"]: call for call in answer["calls"]}
    sandbox = functions["CRIRuntime.run_sandbox"]
    assert sandbox["file"] == "glasslet/runtime/cri/runtime_service.py"
    assert sandbox["waitedOn"] == "RunPodSandbox"
    assert 0 < sandbox["waitedMs"] <= sandbox["endMs"] - sandbox["startMs"]
    above = []
    while sandbox["parent"] >= 0:
        sandbox = answer["calls"][sandbox["parent"]]
        above.append(sandbox["function"])
    assert {"SandboxCreator.create", "Executor.run", "PodSync.settle"} <= set(above)
    assert any(call["file"] == "glasslet/podspec/container.py" for call in answer["calls"])
    assert output(glasslet(agent, "calls", f"web-{NODE}", "--last")).count("RunPodSandbox") > 1


async def test_values_of_environment_variables_are_not_in_a_trace(agent: Agent) -> None:
    manifest = busybox_pod("secretive")
    manifest["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
    manifest["spec"]["containers"][0]["args"] = [SECRET]
    answer = await traced(agent, manifest)
    assert len(answer["calls"]) > 100
    assert SECRET not in json.dumps(answer)


async def test_the_start_of_the_agent_is_there_long_after_it(agent: Agent) -> None:
    answer = json.loads(output(glasslet(agent, "calls", "--start", "-o", "json")))
    names = [call["function"] for call in answer["calls"]]
    order = ["load", "load_agent", "run", "build_foundation", "connect_runtime", "build_pod_side"]
    assert [name for name in names if name in order] == order
    connected = answer["calls"][names.index("connect_runtime")]
    assert connected["waitedOn"]
    assert not answer["active"]
    assert "connect_runtime" in output(glasslet(agent, "calls", "--start"))


async def test_a_trace_opens_in_other_tools(agent: Agent, tmp_path: Path) -> None:
    await traced_start(agent, "web")
    perfetto, otlp = tmp_path / "perfetto.json", tmp_path / "otlp.json"
    output(glasslet(agent, "calls", "web", "--last", "--perfetto", str(perfetto), "--otlp", str(otlp)))
    events = json.loads(perfetto.read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"X", "M"}
    (spans,) = json.loads(otlp.read_text())["resourceSpans"][0]["scopeSpans"]
    known = {span["spanId"] for span in spans["spans"]}
    assert {span["parentSpanId"] for span in spans["spans"] if "parentSpanId" in span} < known


async def test_the_tree_reaches_a_collector_as_one_trace(agent: Agent, real_collector: RealCollector) -> None:
    answer = await traced_start(agent, "web")
    address = f"http://127.0.0.1:{real_collector.http_port}"
    output(glasslet(agent, "calls", "web", "--last", "--otlp", address))
    spans = real_collector.wait_for(lambda spans: len(spans) >= len(answer["calls"]))
    assert len(spans) == len(answer["calls"])
    assert len({span.trace_id for span in spans}) == 1
    assert {span.service for span in spans} == {"kubelet"}
    above = ancestors(spans, next(span for span in spans if span.name == "CRIRuntime.run_sandbox"))
    names = [span.name for span in above]
    order = ["SandboxCreator.create", "Executor.run", "PodSync.settle"]
    assert [name for name in names if name in order] == order


async def test_a_collector_that_is_away_is_named(agent: Agent) -> None:
    sending = glasslet(agent, "calls", "--start", "--otlp", "http://127.0.0.1:1")
    _, errors = sending.communicate(timeout=60)
    assert sending.returncode != 0
    assert "the collector at http://127.0.0.1:1/v1/traces did not take the spans" in errors


async def test_a_source_file_is_served_and_no_other(agent: Agent) -> None:
    answer = await agent.ask("/glass/v1/source?file=glasslet/pods/worker.py")
    assert "class PodWorker" in answer["text"]
    for file in ("/etc/passwd", "glasslet/../../../etc/passwd", "glasslet/py.typed", "glasslet//pods/worker.py"):
        with pytest.raises(aiohttp.ClientResponseError, match="404"):
            await agent.ask(f"/glass/v1/source?file={file}")


async def test_a_pod_that_is_not_traced_has_no_calls(agent: Agent) -> None:
    with pytest.raises(aiohttp.ClientResponseError, match="404"):
        await agent.ask("/glass/v1/pods/default/web/calls")
