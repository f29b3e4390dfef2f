"""A device plugin as a process of its own, and the whole agent: pods get devices and keep them."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from glasslet.devices._generated import podresources_pb2 as v1
from tests.fakes.agent import NODE, Agent, agent_on, busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain, phase

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

GPU = "example.com/gpu"
SHOW = "echo DEVICES=$DEVICES; cat /given; ls -l /dev/fake; trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"


@contextmanager
def plugin(agent: Agent, *names: str) -> Iterator[subprocess.Popen[bytes]]:
    """A plugin that gives each container a file, a device node and a variable."""
    given = agent.folder / "given"
    given.write_text("from the plugin\n")
    words = [sys.executable, "-m", "tests.fakes.device_plugin", "--folder", str(agent.device_plugins)]
    words += ["--resource", GPU, "--devices", ",".join(names), "--mount", f"{given}:/given"]
    process = subprocess.Popen([*words, "--node", "/dev/null:/dev/fake"], cwd=Path(__file__).parents[2])
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def wants(name: str, count: int = 1, command: str = SHOW) -> dict[str, Any]:
    limits = {GPU: str(count)}
    manifest = busybox_pod(name, command)
    manifest["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
    return manifest


async def ask(agent: Agent, verb: str, request: type[Message], answer: type[Message]) -> Any:
    """A call of the pod resources API."""
    async with grpc.aio.insecure_channel(f"unix:{agent.root}/pod-resources/kubelet.sock") as channel:
        call = channel.unary_unary(
            f"/v1.PodResourcesLister/{verb}",
            request_serializer=request.SerializeToString,
            response_deserializer=answer.FromString,
        )
        return await call(request(), wait_for_ready=True)


async def allocated(agent: Agent, name: str) -> dict[str, list[str]]:
    """The devices of a pod, by resource."""
    answer = await ask(agent, "List", v1.ListPodResourcesRequest, v1.ListPodResourcesResponse)
    found: dict[str, list[str]] = {}
    for pod in answer.pod_resources:
        if pod.name.startswith(name):
            for container in pod.containers:
                for one in container.devices:
                    found.setdefault(one.resource_name, []).extend(one.device_ids)
    return found


def output(agent: Agent, name: str) -> str:
    """The newest log of a pod's container."""
    logs = sorted(agent.logs.glob(f"default_{name}-*/main/*.log"))
    return logs[-1].read_text() if logs else ""


async def known(agent: Agent) -> None:
    """Until the agent knows the plugin's devices."""
    async with asyncio.timeout(120):
        while True:
            answer = await ask(
                agent, "GetAllocatableResources", v1.AllocatableResourcesRequest, v1.AllocatableResourcesResponse
            )
            if answer.devices:
                return
            await asyncio.sleep(0.1)


def is_ready(rows: dict[str, Any], name: str) -> bool:
    return bool(rows.get(name, {}).get("ready") == 1)


async def test_a_pod_runs_with_the_device_that_its_plugin_gave(containerd: PrivateContainerd, tmp_path: Path) -> None:
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready(120)
        with plugin(agent, "a"):
            await known(agent)
            agent.put(wants("first"))
            await agent.wait_for(lambda rows: is_ready(rows, "first"), seconds=120)
            await agent.wait_for(lambda _: "/dev/fake" in output(agent, "first"), seconds=120)
            said = output(agent, "first")
            assert "DEVICES=a" in said
            assert "from the plugin" in said
            assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
            assert "1,   3" in said or "1, 3" in said or "1,     3" in said, "the node is that of /dev/null"
            assert await allocated(agent, "first") == {GPU: ["a"]}

            agent.put(wants("second"))
            rows = await agent.wait_for(lambda rows: rows.get("second", {}).get("phase") == "Failed", seconds=120)
            assert "UnexpectedAdmissionError" in str(rows["second"])


async def test_a_pod_keeps_its_device_over_restarts_of_agent_and_plugin(
    containerd: PrivateContainerd, tmp_path: Path
) -> None:
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready(120)
        with plugin(agent, "a", "b", "c"):
            await known(agent)
            agent.put(wants("kept", 2))
            await agent.wait_for(lambda rows: is_ready(rows, "kept"), seconds=120)
            before = await allocated(agent, "kept")
            agent.kill()
        agent.start()
        await agent.wait_until_ready(120)
        rows = await agent.wait_for(lambda rows: is_ready(rows, "kept"), seconds=120)
        assert rows["kept"]["restarts"] == 0
        assert await allocated(agent, "kept") == before == {GPU: ["a", "b"]}
        with plugin(agent, "a", "b", "c"):
            await known(agent)
            agent.put(wants("next", 1))
            await agent.wait_for(lambda rows: is_ready(rows, "next"), seconds=120)
            assert await allocated(agent, "next") == {GPU: ["c"]}


async def test_a_container_starts_again_while_its_plugin_is_dead(containerd: PrivateContainerd, tmp_path: Path) -> None:
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready(120)
        go = tmp_path / "go"
        go.mkdir()
        command = "echo DEVICES=$DEVICES; while [ ! -e /go/on ]; do sleep 0.1; done; rm /go/on; exit 3"
        manifest = wants("again", command=command)
        manifest["spec"]["volumes"] = [{"name": "go", "hostPath": {"path": str(go)}}]
        manifest["spec"]["containers"][0]["volumeMounts"] = [{"name": "go", "mountPath": "/go"}]
        with plugin(agent, "a"):
            await known(agent)
            agent.put(manifest)
            await agent.wait_for(lambda rows: is_ready(rows, "again"), seconds=120)
        (go / "on").touch()
        await agent.wait_for(
            lambda rows: rows.get("again", {}).get("restarts") == 1 and is_ready(rows, "again"), seconds=120
        )
        await agent.wait_for(lambda _: output(agent, "again").count("DEVICES=a") == 1)
        assert await allocated(agent, "again") == {GPU: ["a"]}


def test_a_node_tells_what_its_plugins_have(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    def amounts(found: Plain | None) -> tuple[str, str]:
        status = (found or {}).get("status", {})
        return status.get("capacity", {}).get(GPU, ""), status.get("allocatable", {}).get(GPU, "")

    with plugin(cluster_agent, "a", "b"):
        controlplane.wait_for(NODE, lambda found: amounts(found) == ("2", "2"), kind="node", seconds=120)
        controlplane.apply({**wants("gets-one"), "spec": {**wants("gets-one")["spec"], "nodeName": NODE}})
        controlplane.wait_for("gets-one", is_running, seconds=120)
    # behaviours.md §24: "A lost plugin keeps capacity with zero allocatable for 5 min"
    controlplane.wait_for(NODE, lambda found: amounts(found) == ("2", "0"), kind="node", seconds=120)
    assert is_running(controlplane.get("pod", "gets-one"))


def is_running(found: Plain | None) -> bool:
    return phase(found) == "Running"
