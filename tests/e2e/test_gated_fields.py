"""Fields behind alpha gates, with the gates on, on a real runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import cluster_member, joined, running_control_plane
from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import FOR_EVER, NODE, Agent, agent_on, busybox_pod
from tests.fakes.containerd import BUSYBOX, PrivateContainerd, shows_what_is_too_old
from tests.fakes.control_plane import ControlPlane, Plain, phase

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(180)]

GATES = {"HostnameOverride": True, "EnvFiles": True, "ContainerStopSignals": True, "ImageVolume": True}


@pytest.fixture
def standalone(containerd: PrivateContainerd, tmp_path: Path) -> Iterator[Agent]:
    """An agent without API server, which would have to know the gates, too."""
    with agent_on(containerd, tmp_path / "agent", featureGates=GATES) as agent:
        yield agent


def output(agent: Agent, pod: str) -> list[str]:
    """What container main of the pod has written so far, line by line."""
    files = agent.logs.glob(f"default_{pod}-*/main/0.log")
    return [line.split(" ", 3)[3] for file in files for line in file.read_text().splitlines()]


def from_file(key: str, *, optional: bool = False) -> dict[str, object]:
    selector = {"volumeName": "data", "path": "made/env", "key": key, "optional": optional}
    return {"name": key, "valueFrom": {"fileKeyRef": selector}}


async def test_host_name_and_variables_are_as_the_pod_asks(standalone: Agent) -> None:
    # behaviours.md §19: "hostnameOverride with gate HostnameOverride (alpha, off)."
    await standalone.wait_until_ready()
    named = busybox_pod("named", f"hostname; {FOR_EVER}", hostnameOverride="other.example", subdomain="sub")
    told = busybox_pod("told", f'echo "$COLOUR ${{SHAPE-none}}"; {FOR_EVER}')
    spec = told["spec"]
    spec["volumes"] = [{"name": "data", "emptyDir": {}}]
    spec["containers"][0]["env"] = [from_file("COLOUR"), from_file("SHAPE", optional=True)]
    spec["initContainers"] = [
        {
            "name": "setup",
            "image": BUSYBOX,
            "command": ["sh", "-c", "mkdir /data/made && echo 'COLOUR = dark green' >/data/made/env"],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
    ]
    standalone.put(named)
    standalone.put(told)
    names = ("named", "told")
    await standalone.wait_for(lambda rows: all(rows.get(name, {}).get("ready") == 1 for name in names), seconds=150)
    await standalone.wait_for(lambda _: all(output(standalone, name) for name in names))
    assert output(standalone, "named") == ["other.example"]
    assert output(standalone, "told") == ["dark green none"]


@shows_what_is_too_old
async def test_an_image_volume_that_the_runtime_cannot_mount_is_told(standalone: Agent) -> None:
    """containerd before 2.1 knows only paths of the host."""
    await standalone.wait_until_ready()
    pod = busybox_pod("image-volume", volumes=[{"name": "v", "image": {"reference": BUSYBOX}}])
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    standalone.put(pod)
    await standalone.wait_for(lambda rows: "image-volume" in rows)
    words = 'failed to mkdir "": mkdir : no such file or directory'
    async with asyncio.timeout(120):
        while True:
            [container] = (await standalone.ask(f"/glass/v1/pods/default/image-volume-{NODE}"))["containers"]
            if container.get("message", "").endswith(words):
                break
            await asyncio.sleep(0.1)


@shows_what_is_too_old
async def test_a_runtime_that_knows_no_stop_signals_sends_term(standalone: Agent, tmp_path: Path) -> None:
    """containerd before 2.3 does not read the field."""
    await standalone.wait_until_ready()
    signals = " ".join(f"trap 'echo {name} >/v/said; exit 0' {name};" for name in ("USR1", "TERM"))
    pod = busybox_pod("signalled", f"{signals} echo set; while :; do sleep 1000 & wait; done")
    pod["spec"] |= {"os": {"name": "linux"}, "volumes": [{"name": "v", "hostPath": {"path": str(tmp_path)}}]}
    pod["spec"]["terminationGracePeriodSeconds"] = 60
    pod["spec"]["containers"][0] |= {
        "lifecycle": {"stopSignal": "SIGUSR1"},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    standalone.put(pod)
    await standalone.wait_for(lambda rows: rows.get("signalled", {}).get("ready") == 1)
    await standalone.wait_for(lambda _: output(standalone, "signalled") == ["set"])
    standalone.remove("signalled")
    await standalone.wait_for(lambda rows: "signalled" not in rows)
    assert (tmp_path / "said").read_text() == "TERM\n"


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """A control plane that takes rules for restarts."""
    with running_control_plane("-apiserver-flags", "--feature-gates=ContainerRestartRules=true") as made:
        yield made


def ruled(name: str, command: str) -> Plain:
    """A container that is run again after exit code 42 only."""
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    return {
        "name": name,
        "image": BUSYBOX,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", command],
        "restartPolicy": "Never",
        "restartPolicyRules": [rule],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }


def statuses(found: Plain | None) -> dict[str, Plain]:
    """Statuses of containers by name."""
    status = (found or {}).get("status", {})
    every: list[Plain] = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    return {one["name"]: one for one in every}


def test_rules_for_restarts_hold_before_the_api_server(
    plane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path
) -> None:
    # behaviours.md §2: "ContainerRestartRules (alpha, off): per-container restartPolicy and exit code rules."
    once = "[ -e /v/{0} ] && exit {1}; touch /v/{0}; exit 42"
    volumes: Any = [{"name": "v", "emptyDir": {}}]
    done = api_pod("done", restartPolicy="Never", volumes=volumes, initContainers=[ruled("setup", once.format("i", 0))])
    done["spec"]["containers"] = [ruled("main", once.format("m", 0))]
    lost = api_pod("lost", restartPolicy="Always", volumes=volumes)
    lost["spec"]["containers"] = [ruled("main", once.format("m", 3))]
    agent = cluster_member(plane, containerd, tmp_path, featureGates={"ContainerRestartRules": True})
    with joined(plane, containerd, agent):
        plane.apply(done, lost)
        ended = plane.wait_for("done", lambda pod: phase(pod) == "Succeeded", seconds=120)
        assert {name: one["restartCount"] for name, one in statuses(ended).items()} == {"setup": 1, "main": 1}
        failed = plane.wait_for("lost", lambda pod: phase(pod) == "Failed", seconds=120)
        main = statuses(failed)["main"]
        assert (main["restartCount"], main["state"]["terminated"]["exitCode"]) == (1, 3)
        assert plane.refusals() == []
