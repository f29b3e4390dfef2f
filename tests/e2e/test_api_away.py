"""The API server cannot be reached for a while: the node does its work, and nobody notices afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import json
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import FOR_EVER, NODE, Agent, busybox_pod, free_port
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain, is_ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

AWAY = 90.0
"""Seconds."""
CONVERGED = 120.0
"""Seconds at most on a machine with much else to do. That it takes less than ten is shown in virtual time."""
STEADY = 29


class Gate:
    """A TCP relay before the API server: while it is shut, connections are refused and the open ones are reset."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = (parts.hostname, parts.port)
        self._open: set[socket.socket] = set()
        self._shut = False
        self._lock = threading.Lock()
        self.port = free_port()
        """One that nothing else is given while nobody listens on it."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._accept()

    def shut(self) -> None:
        """As a killed server."""
        with contextlib.suppress(OSError):  # it was shut before
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            self._shut = True
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def reopen(self) -> None:
        """On the same port."""
        self._shut = False
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._accept()

    def _accept(self) -> None:
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def _serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=self._relay, args=(near,), daemon=True).start()

    def _relay(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._target) as far, selectors.DefaultSelector() as ready:
            with self._lock:
                if self._shut:  # since it was accepted
                    return
                self._open |= {near, far}
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            try:
                while not self._passed_end(ready):
                    pass
            except OSError:
                return
            finally:
                with self._lock:
                    self._open -= {near, far}

    def _passed_end(self, ready: selectors.BaseSelector) -> bool:
        """Passes on what came; whether one side has ended."""
        for key, _ in ready.select():
            assert isinstance(key.fileobj, socket.socket)
            data = key.fileobj.recv(65536)
            if not data:
                return True
            key.data.sendall(data)
        return False


@pytest.fixture
def gate(controlplane: ControlPlane) -> Iterator[Gate]:
    kubeconfig = yaml.safe_load(Path(controlplane.node_kubeconfig).read_text())
    made = Gate(kubeconfig["clusters"][0]["cluster"]["server"])
    yield made
    made.shut()


@pytest.fixture
def gated_agent(
    controlplane: ControlPlane, containerd: PrivateContainerd, gate: Gate, tmp_path: Path
) -> Iterator[Agent]:
    """An agent that reaches the API server only through the gate."""
    agent = cluster_member(controlplane, containerd, tmp_path)
    kubeconfig = yaml.safe_load(Path(controlplane.node_kubeconfig).read_text())
    kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{gate.port}"
    path = tmp_path / "gated.kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    agent.flags = tuple(str(path) if flag == controlplane.node_kubeconfig else flag for flag in agent.flags)
    with joined(controlplane, containerd, agent):
        yield agent


def test_thirty_pods_go_on_without_the_api_server_and_converge_after_its_return(
    controlplane: ControlPlane, gate: Gate, gated_agent: Agent
) -> None:
    names = [f"steady-{number}" for number in range(STEADY)]
    controlplane.apply(*(api_pod(name) for name in names))
    gated_agent.put(busybox_pod("before"))
    for name in [*names, f"before-{NODE}"]:
        controlplane.wait_for(name, is_ready, seconds=240)
    controlplane.apply(api_pod("crashing", "sleep 2; exit 4"))
    controlplane.wait_for("crashing", lambda found: told_restarts(found) >= 1)
    before = controlplane.pods()
    readiness = ready_condition(controlplane)
    ran = logs_of(gated_agent, "steady")
    leaving, changed = names[0], names[1]

    gate.shut()
    crashed = instances_of(gated_agent, "crashing")[-1]
    went = time.monotonic()
    gated_agent.put(busybox_pod("meanwhile"))
    wait_for_log(gated_agent, "meanwhile")
    controlplane.kubectl("delete", "pod", leaving, "--wait=false")
    controlplane.apply(api_pod("created"))
    controlplane.kubectl("label", "pod", changed, "seen=later")
    time.sleep(max(0.0, AWAY - (time.monotonic() - went)))
    wait_until(lambda: instances_of(gated_agent, "crashing")[-1] > crashed, gated_agent)
    assert controlplane.get("pod", f"meanwhile-{NODE}") is None
    heard_of = heartbeat(controlplane)

    gate.reopen()
    back = time.monotonic()
    wait_until(lambda: heartbeat(controlplane) > heard_of, gated_agent, CONVERGED)
    controlplane.wait_for(leaving, lambda found: found is None, seconds=CONVERGED)
    controlplane.wait_for(f"meanwhile-{NODE}", is_ready, seconds=CONVERGED)
    controlplane.wait_for("created", is_ready, seconds=CONVERGED)
    controlplane.wait_for(
        "crashing",
        lambda found: told_restarts(found) == instances_of(gated_agent, "crashing")[-1],
        seconds=CONVERGED,
    )
    print(f"all told {time.monotonic() - back:.1f} s after the return")

    after = controlplane.pods()
    for name in [*names[1:], f"before-{NODE}"]:
        assert after[name]["status"] == before[name]["status"]
    remaining = {path for path in ran if f"_{leaving}_" not in path}
    wait_until(lambda: logs_of(gated_agent, "steady") == remaining, gated_agent)
    assert ready_condition(controlplane) == readiness


def test_an_agent_that_starts_while_the_api_server_is_away_keeps_its_pods(
    controlplane: ControlPlane, gate: Gate, gated_agent: Agent
) -> None:
    names = [f"kept-{number}" for number in range(3)]
    controlplane.apply(*(api_pod(name) for name in names))
    for name in names:
        controlplane.wait_for(name, is_ready)
    before = controlplane.pods()
    ran = logs_of(gated_agent, "kept")
    gate.shut()
    gated_agent.kill()
    gated_agent.start()
    gated_agent.put(busybox_pod("static"))
    wait_for_log(gated_agent, "static")
    time.sleep(5)
    wait_until(lambda: why_node(gated_agent).get("rule") == "api_unreachable", gated_agent)
    gate.reopen()
    controlplane.wait_for(f"static-{NODE}", is_ready, seconds=CONVERGED)
    controlplane.apply(api_pod("later"))
    controlplane.wait_for("later", is_ready)
    wait_until(lambda: why_node(gated_agent).get("rule") == "fine", gated_agent)
    # The pod may be seen to be ready before the agent has the answer that says so.
    wait_until(lambda: trace_of(gated_agent, "later").get("milestone") == "Ready accepted at API", gated_agent)
    traced = trace_of(gated_agent, "later")
    created, start, end = (datetime.fromisoformat(traced[name]) for name in ("created", "start", "end"))
    assert created <= start < end
    after = controlplane.pods()
    for name in names:
        assert after[name]["status"] == before[name]["status"]
    assert logs_of(gated_agent, "kept") == ran


def test_with_its_memory_on_such_an_agent_restarts_and_probes_its_pods_too(
    controlplane: ControlPlane, gate: Gate, gated_agent: Agent, tmp_path: Path
) -> None:
    names = [f"known-{number}" for number in range(10)]
    gated_agent.kill()
    gated_agent.environment["GLASSLET_REMEMBER_API_PODS"] = "true"
    gated_agent.start()
    flags = tmp_path / "flags"
    controlplane.apply(*(api_pod(name) for name in names), probed_pod("probed", flags))
    for name in [*names, "probed"]:
        controlplane.wait_for(name, is_ready, seconds=120)
    before = controlplane.pods()
    ran = logs_of(gated_agent, "known")
    wait_until_kept(gated_agent, 11)

    gate.shut()
    gated_agent.kill()
    controlplane.kubectl("delete", "pod", names[0], "--grace-period=0", "--force")
    (flags / "sick").touch()
    gated_agent.start()
    wait_for_instances(gated_agent, "probed", 2)
    assert logs_of(gated_agent, "known") == ran

    gate.reopen()
    controlplane.wait_for("probed", lambda found: told_restarts(found) >= 1)
    controlplane.apply(api_pod("later"))
    controlplane.wait_for("later", is_ready)
    wait_until(lambda: not logs_of(gated_agent, names[0]), gated_agent)
    after = controlplane.pods()
    for name in names[1:]:
        assert after[name]["status"] == before[name]["status"]
    assert logs_of(gated_agent, "known") == {path for path in ran if f"_{names[0]}_" not in path}


def probed_pod(name: str, folder: Path) -> Plain:
    """A pod whose container is restarted when there is a file `sick` in the folder, and which has a token."""
    folder.mkdir()
    made = api_pod(name, f"rm -f /flags/sick; {FOR_EVER}", automountServiceAccountToken=True)
    main = made["spec"]["containers"][0]
    main["livenessProbe"] = {
        "exec": {"command": ["sh", "-c", "! test -e /flags/sick"]},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
    main["volumeMounts"] = [{"name": "flags", "mountPath": "/flags"}]
    made["spec"]["volumes"] = [{"name": "flags", "hostPath": {"path": str(folder)}}]
    return made


def wait_until_kept(agent: Agent, pods: int) -> None:
    """Until so many pods are in the agent's memory, all of them ready."""
    path = agent.root / "glasslet" / "api-pods"

    def kept() -> bool:
        return path.exists() and sum(map(is_ready, json.loads(path.read_bytes().split(b"\n")[1])["pods"])) == pods

    wait_until(kept, agent)


def wait_for_instances(agent: Agent, name: str, number: int) -> None:
    """Until so many instances of the pod's container have run."""
    wait_until(lambda: len(instances_of(agent, name)) >= number, agent)


def wait_until(happened: Callable[[], object], agent: Agent, seconds: float = 120.0) -> None:
    """Asks until it is so."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, agent.tail_of_log()
        time.sleep(0.1)


def why_node(agent: Agent) -> dict[str, Any]:
    """The verdict on the node."""
    return told_by(agent, "/glass/v1/node/why")


def trace_of(agent: Agent, name: str) -> dict[str, Any]:
    """How the pod became ready."""
    return told_by(agent, f"/glass/v1/pods/default/{name}/trace")


def told_by(agent: Agent, path: str) -> dict[str, Any]:
    """What the agent answers; {} while it does not."""
    try:
        answer: dict[str, Any] = asyncio.run(agent.ask(path))
    except (aiohttp.ClientError, OSError):
        return {}
    return answer


def heartbeat(plane: ControlPlane) -> str:
    """When the node was heard of last. Its status is repeated every five minutes only; the lease is what counts."""
    lease = plane.get("lease", NODE, "kube-node-lease")
    return str(lease["spec"]["renewTime"]) if lease else ""


def ready_condition(plane: ControlPlane) -> tuple[str, str]:
    """Status and transition time of the node's Ready."""
    node = plane.get("node", NODE)
    assert node is not None
    found = next(one for one in node["status"]["conditions"] if one["type"] == "Ready")
    return found["status"], found["lastTransitionTime"]


def logs_of(agent: Agent, name: str) -> set[str]:
    """Log files of the pods whose name begins so: one for each container instance that still exists."""
    return {str(path) for path in agent.logs.glob(f"default_{name}*/*/*.log")}


def instances_of(agent: Agent, name: str) -> list[int]:
    """Numbers of the instances of which there is a log, in order."""
    return sorted(int(Path(path).stem) for path in logs_of(agent, name))


def wait_for_log(agent: Agent, name: str) -> None:
    """Waits until a container of the pod ran."""
    wait_until(lambda: logs_of(agent, name), agent)


def told_restarts(found: Plain | None) -> int:
    """The restarts that the API knows of."""
    statuses = (found or {}).get("status", {}).get("containerStatuses", [])
    return int(statuses[0]["restartCount"]) if statuses else -1
