"""The API server takes connections and answers nobody: pods go on, and afterwards everything is as it should be."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.e2e.test_api_pods import api_pod, container, instances, processes, unmistakable, wait_until
from tests.fakes.agent import NODE, Agent
from tests.fakes.control_plane import ControlPlane, is_ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]
STEADY, FRAIL = unmistakable(5), unmistakable(6)


def test_pods_go_on_and_their_statuses_catch_up(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("steady", STEADY), api_pod("frail", FRAIL))
    before = {name: controlplane.wait_for(name, is_ready) for name in ("steady", "frail")}
    wait_until(lambda: len(processes(FRAIL)) == 1)
    with controlplane.away():
        (process,) = processes(FRAIL)
        os.kill(int(process), signal.SIGKILL)
        wait_until(lambda: processes(FRAIL) not in ([], [process]))
        time.sleep(20)
    controlplane.wait_for("frail", lambda found: is_ready(found) and found and container(found)["restartCount"] == 1)
    controlplane.wait_for(NODE, is_ready, kind="node")
    steady = controlplane.get("pod", "steady")
    known = before["steady"]
    assert steady is not None
    assert known is not None
    assert steady["status"] == known["status"]


def test_agent_restarted_meanwhile_keeps_running_pods(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("kept", STEADY))
    before = controlplane.wait_for("kept", is_ready)
    wait_until(lambda: len(processes(STEADY)) == 1)
    ran, process = instances(cluster_agent), processes(STEADY)
    with controlplane.away():
        cluster_agent.kill()
        cluster_agent.start()
        time.sleep(10)
        assert processes(STEADY) == process
    controlplane.wait_for(NODE, is_ready, kind="node")
    time.sleep(5)
    after = controlplane.get("pod", "kept")
    assert before is not None
    assert after is not None
    assert after["status"] == before["status"]
    assert instances(cluster_agent) == ran


def test_pod_deleted_by_force_meanwhile_is_stopped_afterwards(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    """The watch was cut: what happened in between is found by comparing."""
    controlplane.apply(api_pod("doomed", STEADY))
    controlplane.wait_for("doomed", is_ready)
    wait_until(lambda: processes(STEADY))
    cluster_agent.kill()
    controlplane.kubectl("delete", "pod", "doomed", "--grace-period=0", "--force")
    with controlplane.away():
        cluster_agent.start()
        time.sleep(5)
        assert processes(STEADY)
    wait_until(lambda: not processes(STEADY))
