"""Fields behind alpha gates, with the gates on, on a real runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.agent import FOR_EVER, Agent, agent_on, busybox_pod
from tests.fakes.containerd import BUSYBOX, PrivateContainerd

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(180)]

GATES = {"HostnameOverride": True, "EnvFiles": True, "ContainerStopSignals": True}


def output(agent: Agent, pod: str) -> list[str]:
    """What container main of the pod has written so far, line by line."""
    files = agent.logs.glob(f"default_{pod}-*/main/0.log")
    return [line.split(" ", 3)[3] for file in files for line in file.read_text().splitlines()]


def from_file(key: str, *, optional: bool = False) -> dict[str, object]:
    selector = {"volumeName": "data", "path": "made/env", "key": key, "optional": optional}
    return {"name": key, "valueFrom": {"fileKeyRef": selector}}


async def test_host_name_and_variables_are_as_the_pod_asks(containerd: PrivateContainerd, tmp_path: Path) -> None:
    # behaviours.md §19: "hostnameOverride with gate HostnameOverride (alpha, off)."
    with agent_on(containerd, tmp_path / "agent", featureGates=GATES) as agent:
        await agent.wait_until_ready()
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
        agent.put(named)
        agent.put(told)
        names = ("named", "told")
        await agent.wait_for(lambda rows: all(rows.get(name, {}).get("ready") == 1 for name in names), seconds=150)
        assert output(agent, "named") == ["other.example"]
        assert output(agent, "told") == ["dark green none"]
