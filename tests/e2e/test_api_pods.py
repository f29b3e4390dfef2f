"""Pods from a real API server on a real runtime: what people do with kubectl works."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import cluster_member, joined
from tests.fakes.agent import FOR_EVER, NODE, Agent, busybox_pod
from tests.fakes.containerd import BUSYBOX, CONFIGURED, PrivateContainerd
from tests.fakes.control_plane import ControlPlane, is_ready, phase

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]


def api_pod(name: str, command: str = FOR_EVER, **spec: Any) -> dict[str, Any]:
    """A pod with one busybox container; it needs no token."""
    main = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", command]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 2,
            "containers": [main],
            **spec,
        },
    }


def instances(agent: Agent) -> set[str]:
    """Ids of all containers that ever ran under this agent, by the folders of their logs."""
    return {str(path) for path in agent.logs.glob("*/*/*.log")}


def test_scheduled_pod_becomes_ready(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("web"))
    found = controlplane.wait_for("web", is_ready)
    assert found is not None
    assert found["spec"]["nodeName"] == NODE
    status = found["status"]
    assert status["phase"] == "Running"
    assert status["podIP"]
    assert status["hostIP"]
    assert [one["type"] for one in status["conditions"]] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]


def test_pod_is_deleted_with_its_grace(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    """The pod takes a second of it; `kubectl` waits for the deletion, for two minutes at most."""
    controlplane.apply(api_pod("slow", "trap 'sleep 1; exit 0' TERM; echo set; while :; do sleep 0.1; done"))
    controlplane.wait_for("slow", is_ready)
    wait_until(lambda: controlplane.kubectl("logs", "slow") == "set\n")
    began = time.monotonic()
    controlplane.kubectl("delete", "pod", "slow", "--grace-period=300")
    assert time.monotonic() - began >= 1
    assert controlplane.get("pod", "slow") is None


def test_forced_deletion_leaves_nothing_running(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    marker = unmistakable(1)
    controlplane.apply(api_pod("forced", f"trap '' TERM; {marker}"))
    controlplane.wait_for("forced", is_ready)
    wait_until(lambda: processes(marker))
    controlplane.kubectl("delete", "pod", "forced", "--grace-period=0", "--force")
    wait_until(lambda: not processes(marker))


def test_pod_created_again_under_the_same_name_runs(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("twice"))
    old = controlplane.wait_for("twice", is_ready)
    controlplane.kubectl("delete", "pod", "twice", "--grace-period=0", "--force")
    controlplane.apply(api_pod("twice"))
    new = controlplane.wait_for("twice", is_ready)
    assert old is not None
    assert new is not None
    assert new["metadata"]["uid"] != old["metadata"]["uid"]


def test_logs_come_through_the_api_server(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("talks", "echo hello; " + FOR_EVER))
    controlplane.wait_for("talks", is_ready)
    wait_until(lambda: controlplane.kubectl("logs", "talks") == "hello\n")


def test_commands_run_through_the_api_server(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("shell"))
    controlplane.wait_for("shell", is_ready)
    assert controlplane.kubectl("exec", "shell", "--", "echo", "inside") == "inside\n"


@pytest.mark.parametrize(("code", "wanted"), [(0, "Succeeded"), (3, "Failed")])
def test_pod_that_ends_keeps_its_phase(
    controlplane: ControlPlane, cluster_agent: Agent, code: int, wanted: str
) -> None:
    controlplane.apply(api_pod("job", f"exit {code}", restartPolicy="Never"))
    found = controlplane.wait_for("job", lambda found: phase(found) == wanted)
    assert found is not None
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == code


def test_changed_image_restarts_the_container_in_place(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("moves"))
    before = controlplane.wait_for("moves", is_ready)
    controlplane.kubectl("set", "image", "pod/moves", f"main={CONFIGURED}")
    after = controlplane.wait_for(
        "moves", lambda found: is_ready(found) and found and container(found)["restartCount"] == 1
    )
    assert before is not None
    assert after is not None
    assert container(after)["image"] == CONFIGURED
    assert container(after)["lastState"]["terminated"]["containerID"] == container(before)["containerID"]
    assert after["status"]["podIP"] == before["status"]["podIP"]


def test_debug_container_joins_a_running_pod(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("puzzle"))
    controlplane.wait_for("puzzle", is_ready)
    controlplane.kubectl("debug", "puzzle", f"--image={BUSYBOX}", "--container=look", "--", "sh", "-c", FOR_EVER)
    found = controlplane.wait_for(
        "puzzle",
        lambda found: found and "running" in str(found["status"].get("ephemeralContainerStatuses", "")),
    )
    assert found is not None
    assert container(found)["restartCount"] == 0


def test_deadline_set_later_ends_the_pod(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("timed"))
    controlplane.wait_for("timed", is_ready)
    controlplane.kubectl("patch", "pod", "timed", "-p", '{"spec":{"activeDeadlineSeconds":1}}')
    found = controlplane.wait_for("timed", lambda found: phase(found) == "Failed")
    assert found is not None
    assert found["status"]["reason"] == "DeadlineExceeded"


def test_agent_that_is_killed_finds_its_pods_again(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    names = [f"stays-{number}" for number in range(3)]
    controlplane.apply(*(api_pod(name) for name in names))
    before = {name: controlplane.wait_for(name, is_ready) for name in names}
    ran = instances(cluster_agent)
    cluster_agent.kill()
    cluster_agent.start()
    controlplane.apply(api_pod("later"))
    controlplane.wait_for("later", is_ready)
    time.sleep(3)
    after = controlplane.pods()
    for name in names:
        known = before[name]
        assert known is not None
        assert after[name]["status"] == known["status"]
    assert {path for path in instances(cluster_agent) if "later" not in path} == ran


def test_pod_deleted_while_the_agent_was_away_is_stopped(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    marker = unmistakable(2)
    controlplane.apply(api_pod("orphan", marker))
    controlplane.wait_for("orphan", is_ready)
    wait_until(lambda: processes(marker))
    cluster_agent.kill()
    controlplane.kubectl("delete", "pod", "orphan", "--grace-period=0", "--force")
    assert processes(marker)
    cluster_agent.start()
    wait_until(lambda: not processes(marker))


def test_static_pod_has_a_mirror_that_comes_back(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    name = f"static-{NODE}"
    cluster_agent.put(busybox_pod("static"))
    first = controlplane.wait_for(name, is_ready)
    ran = instances(cluster_agent)
    # Not waited for: a new pod of that name is there so soon that kubectl may not notice the end of the old one.
    controlplane.kubectl("delete", "pod", name, "--wait=false")
    assert first is not None
    second = controlplane.wait_for(
        name, lambda found: is_ready(found) and found and found["metadata"]["uid"] != first["metadata"]["uid"]
    )
    assert second is not None
    assert second["status"]["containerStatuses"] == first["status"]["containerStatuses"]
    assert instances(cluster_agent) == ran
    cluster_agent.remove("static")
    controlplane.wait_for(name, lambda found: found is None)


def test_pod_for_another_kind_of_node_is_refused(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("choosy", nodeName=NODE, nodeSelector={"disk": "none-such"}))
    found = controlplane.wait_for("choosy", lambda found: phase(found) == "Failed")
    assert found is not None
    assert found["status"]["reason"] == "NodeAffinity"
    assert found["status"]["message"] == (
        "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    )
    message = controlplane.wait_for_event("choosy", "NodeAffinity")
    assert message == "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"


def test_full_node_refuses_one_more_pod(
    controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path
) -> None:
    agent = cluster_member(controlplane, containerd, tmp_path, maxPods=1)
    with joined(controlplane, containerd, agent):
        controlplane.apply(api_pod("first", nodeName=NODE))
        controlplane.wait_for("first", is_ready)
        controlplane.apply(api_pod("second", nodeName=NODE))
        found = controlplane.wait_for("second", lambda found: phase(found) == "Failed")
        assert found is not None
        assert found["status"]["reason"] == "OutOfpods"


def test_no_request_of_the_node_is_refused(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    cluster_agent.put(busybox_pod("static"))
    controlplane.apply(api_pod("web"))
    controlplane.wait_for("web", is_ready)
    controlplane.wait_for(f"static-{NODE}", is_ready)
    controlplane.kubectl("delete", "pod", "web")
    assert controlplane.refusals() == []


def container(found: dict[str, Any]) -> dict[str, Any]:
    """The status of the only container."""
    (status,) = found["status"]["containerStatuses"]
    assert isinstance(status, dict)
    return status


def unmistakable(number: int) -> str:
    """A command that nobody else on this machine runs."""
    return f"sleep {1_000_000_000 + os.getpid() * 10 + number}"


def processes(command: str) -> list[str]:
    """Process ids whose command line contains it, but for shells that only start it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if " ".join(words).strip() == command or (words[0] == "sh" and command in " ".join(words)):
                found.append(path.parent.name)
    return found


def wait_until(happened: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"did not happen within {seconds} s"
        time.sleep(0.1)
