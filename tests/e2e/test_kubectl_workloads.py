"""Objects of the controllers on one node: their pods come, change and go as on any other kubelet."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.conftest import cluster_member, joined
from tests.fakes.agent import FOR_EVER, NODE, Agent
from tests.fakes.containerd import BUSYBOX, PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain, is_ready, phase

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster_agent(
    controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Agent]:
    """One agent for all of these; nothing it asks for may be refused."""
    agent = cluster_member(controlplane, containerd, tmp_path_factory.mktemp("w"))
    with joined(controlplane, containerd, agent):
        yield agent
        # In the foreground, so that none of them can make another pod for the nodes of later tests.
        kinds = "deployments,daemonsets,statefulsets,jobs,services"
        controlplane.kubectl("delete", kinds, "-l", "test=workloads", "--cascade=foreground")
        assert controlplane.refusals() == []


def template(name: str, command: str = FOR_EVER, **spec: Any) -> Plain:
    main = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", command]}
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 2, "containers": [main], **spec},
    }


def workload(kind: str, name: str, pods: Plain, *, api: str = "apps/v1", **spec: Any) -> Plain:
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "labels": {"test": "workloads"}},
        "spec": {"template": pods, **selector, **spec},
    }


def pods_of(plane: ControlPlane, name: str) -> list[Plain]:
    return [one for one in plane.pods().values() if one["metadata"].get("labels", {}).get("app") == name]


def wait_for_pods(
    plane: ControlPlane, name: str, what: Callable[[list[Plain]], bool], seconds: float = 120
) -> list[Plain]:
    deadline = time.monotonic() + seconds
    while True:
        found = pods_of(plane, name)
        if what(found):
            return found
        assert time.monotonic() < deadline, json.dumps([one["status"] for one in found], indent=1)
        time.sleep(0.1)


def test_a_deployment_rolls_without_losing_a_pod(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    body = workload(
        "Deployment",
        "web",
        template("web"),
        replicas=3,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
    )
    controlplane.apply(body)
    controlplane.kubectl("rollout", "status", "deployment/web", "--timeout=110s")
    old = {one["metadata"]["uid"] for one in pods_of(controlplane, "web")}
    controlplane.kubectl("set", "env", "deployment/web", "VERSION=2")
    fewest = 3
    deadline = time.monotonic() + 120
    while {one["metadata"]["uid"] for one in pods_of(controlplane, "web")} & old:
        assert time.monotonic() < deadline
        fewest = min(fewest, sum(1 for one in pods_of(controlplane, "web") if is_ready(one)))
    controlplane.kubectl("rollout", "status", "deployment/web", "--timeout=110s")
    assert fewest == 3
    wait_for_pods(controlplane, "web", lambda found: len(found) == 3)
    assert controlplane.kubectl("exec", "deployment/web", "--", "sh", "-c", "echo $VERSION") == "2\n"


def test_an_image_that_is_changed_in_a_pod_restarts_its_container_only(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    controlplane.apply({"apiVersion": "v1", "kind": "Pod", **template("imaged")} | {"metadata": {"name": "imaged"}})
    before = controlplane.wait_for("imaged", is_ready)
    controlplane.kubectl("set", "image", "pod/imaged", "main=busybox:1.36")
    after = controlplane.wait_for(
        "imaged", lambda found: is_ready(found) and found and found["status"]["containerStatuses"][0]["restartCount"]
    )
    assert before is not None
    assert after is not None
    assert after["status"]["podIP"] == before["status"]["podIP"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 1


def test_a_daemon_set_runs_on_the_node_and_comes_back(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(workload("DaemonSet", "daemon", template("daemon")))
    first = wait_for_pods(controlplane, "daemon", lambda found: len(found) == 1 and is_ready(found[0]))
    controlplane.kubectl("delete", "pod", first[0]["metadata"]["name"])
    second = wait_for_pods(controlplane, "daemon", lambda found: len(found) == 1 and is_ready(found[0]))
    assert second[0]["metadata"]["uid"] != first[0]["metadata"]["uid"]
    assert second[0]["spec"]["nodeName"] == NODE


def test_a_job_that_fails_uses_up_its_tries(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    pods = template("fails", "exit 7", restartPolicy="Never")
    controlplane.apply(workload("Job", "fails", pods, api="batch/v1", backoffLimit=1))
    job = controlplane.wait_for("fails", lambda found: has_condition(found, "Failed"), kind="job", seconds=200)
    assert job is not None
    reasons = {one["type"]: one.get("reason") for one in job["status"]["conditions"]}
    assert reasons["Failed"] == "BackoffLimitExceeded"
    assert job["status"]["failed"] == 2
    found = pods_of(controlplane, "fails")
    assert [phase(one) for one in found] == ["Failed", "Failed"]
    assert {one["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for one in found} == {7}


def test_a_job_that_restarts_in_its_pod_completes(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    pods = template("retries", "test -e /work/once || { touch /work/once; exit 1; }", restartPolicy="OnFailure")
    pods["spec"]["volumes"] = [{"name": "work", "emptyDir": {}}]
    pods["spec"]["containers"][0]["volumeMounts"] = [{"name": "work", "mountPath": "/work"}]
    controlplane.apply(workload("Job", "retries", pods, api="batch/v1", completions=2, parallelism=2))
    controlplane.wait_for("retries", lambda found: has_condition(found, "Complete"), kind="job")
    found = pods_of(controlplane, "retries")
    assert [one["status"]["containerStatuses"][0]["restartCount"] for one in found] == [1, 1]


def test_a_stateful_set_starts_and_replaces_its_pods_in_order(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(workload("StatefulSet", "db", template("db"), replicas=2, serviceName="db"))
    wait_for_pods(controlplane, "db", lambda found: len(found) == 2 and all(is_ready(one) for one in found))
    assert controlplane.kubectl("exec", "db-1", "--", "hostname") == "db-1\n"
    first = controlplane.get("pod", "db-0")
    controlplane.kubectl("rollout", "restart", "statefulset/db")
    controlplane.kubectl("rollout", "status", "statefulset/db", "--timeout=110s")
    second = controlplane.get("pod", "db-0")
    assert first is not None
    assert second is not None
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_a_node_port_service_is_in_the_environment_of_later_pods(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    # behaviours.md §21: "Created before the pod only."
    ports = [{"name": "http", "port": 8080, "nodePort": 30123}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    controlplane.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "front-end", "labels": {"test": "workloads"}},
            "spec": {"type": "NodePort", "selector": {"app": "none"}, "ports": ports},
        }
    )
    service = controlplane.wait_for("front-end", lambda found: found is not None, kind="service")
    assert service is not None
    address = service["spec"]["clusterIP"]
    # The node may not have heard of the service yet: a container that is made later does not lack it.
    pods = template("client", f"env | grep -q ^FRONT_END_PORT= || exit 1; {FOR_EVER}")
    controlplane.apply({"apiVersion": "v1", "kind": "Pod", **pods} | {"metadata": {"name": "client"}})
    lines: list[str] = []
    deadline = time.monotonic() + 120
    while not any(line.startswith("FRONT_END_PORT=") for line in lines):
        assert time.monotonic() < deadline, lines
        lines = controlplane.kubectl("exec", "client", "--", "env", check=False).splitlines()
    assert sorted(line for line in lines if line.startswith("FRONT_END")) == [
        f"FRONT_END_PORT=tcp://{address}:8080",
        f"FRONT_END_PORT_53_UDP=udp://{address}:53",
        f"FRONT_END_PORT_53_UDP_ADDR={address}",
        "FRONT_END_PORT_53_UDP_PORT=53",
        "FRONT_END_PORT_53_UDP_PROTO=udp",
        f"FRONT_END_PORT_8080_TCP=tcp://{address}:8080",
        f"FRONT_END_PORT_8080_TCP_ADDR={address}",
        "FRONT_END_PORT_8080_TCP_PORT=8080",
        "FRONT_END_PORT_8080_TCP_PROTO=tcp",
        f"FRONT_END_SERVICE_HOST={address}",
        "FRONT_END_SERVICE_PORT=8080",
        "FRONT_END_SERVICE_PORT_DNS=53",
        "FRONT_END_SERVICE_PORT_HTTP=8080",
    ]


def has_condition(found: Plain | None, kind: str) -> bool:
    conditions = (found or {}).get("status", {}).get("conditions", [])
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)
