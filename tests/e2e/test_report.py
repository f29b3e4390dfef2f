"""`glasslet report` and `kubectl glass report` of a real pod: everything about it, and no secrets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

PROGRAMS = Path(sys.executable).parent
SECRETS = {
    "from a Secret": "s3cr3t-of-the-database",
    "a variable": "v4riable-of-the-pod",
    "an annotation": "t0ken-of-an-annotation",
    "a log line": "l0g-line-with-a-password",
    "a termination message": "m3ssage-with-a-password",
}
CRASH = (
    f"echo {SECRETS['a log line']}; echo {SECRETS['a termination message']} > /dev/termination-log; sleep 0.5; exit 3"
)


def crashing_pod() -> Plain:
    pod = api_pod("crash", 'eval "$SCRIPT"')
    pod["metadata"]["annotations"] = {"example.com/token": SECRETS["an annotation"]}
    pod["spec"]["containers"][0]["env"] = [
        {"name": "SCRIPT", "value": CRASH},
        {"name": "PLAIN", "value": SECRETS["a variable"]},
        {"name": "SAFE", "valueFrom": {"secretKeyRef": {"name": "report", "key": "password"}}},
    ]
    return pod


def data_of(text: str) -> dict[str, Any]:
    """The JSON object at the end of a report."""
    found = re.search(r"## Data\n\n(`{3,})json\n(.*)\n\1\n\Z", text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[2])
    return data


def run(*words: str | Path, **environment: str) -> str:
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_both_reports_are_whole_and_hold_no_secret(
    controlplane: ControlPlane, cluster_agent: Agent, containerd: PrivateContainerd, tmp_path: Path
) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "report"}}
    controlplane.apply({**secret, "stringData": {"password": SECRETS["from a Secret"]}}, crashing_pod())
    controlplane.wait_for(
        "crash",
        lambda found: found is not None and "CrashLoopBackOff" in json.dumps(found.get("status", {})),
    )
    file = tmp_path / "report.md"
    run(PROGRAMS / "glasslet", "--root-dir", cluster_agent.root, "report", "crash", "-o", file)
    path = f"{PROGRAMS}:{os.environ['PATH']}"
    local = file.read_text()
    remote = run("kubectl", "glass", "report", "crash", "-o", "-", f"--kubeconfig={controlplane.kubeconfig}", PATH=path)
    assert file.stat().st_mode & 0o777 == 0o600
    for text in (local, remote):
        assert [what for what, value in SECRETS.items() if value in text] == []
        headings = re.findall("^## (.*)$", text, re.MULTILINE)
        assert [name for name in ("Why", "Node", "Pod", "Start", "Data") if name not in headings] == []
        data = data_of(text)
        assert (data["schema"], data["pod"]) == ("glasslet.report/v1", "default/crash")
        assert data["agent"]["node"] == NODE
        assert data["why"]["state"] == "failing"
        assert data["configuration"]
    assert data_of(local)["missing"].keys() == {"events"}
    assert data_of(remote)["missing"] == {}
    assert "BackOff" in {event["reason"] for event in data_of(remote)["events"]}
    kept = run(PROGRAMS / "glasslet", "--root-dir", cluster_agent.root, "report", "crash", "-o", "-", "--with-output")
    assert [what for what in ("a log line", "a termination message") if SECRETS[what] not in kept] == []


def test_without_an_agent_the_report_comes_from_the_record(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("recorded"))
    controlplane.wait_for("recorded", lambda found: found is not None and found["status"].get("phase") == "Running")
    cluster_agent.terminate()
    text = run(PROGRAMS / "glasslet", "--root-dir", cluster_agent.root, "report", "recorded", "-o", "-")
    assert "- no everything else: no agent answers" in text
    assert data_of(text)["trace"]["name"] == "recorded"
    cluster_agent.start()
