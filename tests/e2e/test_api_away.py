"""The API server cannot be reached for half a minute: the node does its work, and nobody notices afterwards."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import NODE, Agent, busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain, is_ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

AWAY = 30.0
"""Seconds. Less than the time after which the controllers give a node up: then pods change by their hand."""
CONVERGED = 10.0
STEADY = 29


class Gate:
    """A TCP relay before the API server: while it is shut, connections are refused and the open ones are reset."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = (parts.hostname, parts.port)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._accept()

    def shut(self) -> None:
        """As a killed server."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def reopen(self) -> None:
        """On the same port."""
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
                self._open |= {near, far}
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            with contextlib.suppress(OSError):
                while True:
                    for key, _ in ready.select():
                        assert isinstance(key.fileobj, socket.socket)
                        data = key.fileobj.recv(65536)
                        if not data:
                            return
                        key.data.sendall(data)
            with self._lock:
                self._open -= {near, far}


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
        controlplane.wait_for(name, is_ready, seconds=120)
    controlplane.apply(api_pod("crashing", "sleep 2; exit 4"))
    controlplane.wait_for("crashing", lambda found: told_restarts(found) == 1)
    before = controlplane.pods()
    heartbeat = ready_condition(controlplane)
    ran = logs_of(gated_agent, "steady")

    gate.shut()
    went = time.monotonic()
    gated_agent.put(busybox_pod("meanwhile"))
    wait_for_log(gated_agent, "meanwhile", 10)
    leaving, changed = names[0], names[1]
    controlplane.kubectl("delete", "pod", leaving, "--wait=false")
    controlplane.apply(api_pod("created"))
    controlplane.kubectl("label", "pod", changed, "seen=later")
    time.sleep(max(0.0, AWAY - (time.monotonic() - went)))
    assert instances_of(gated_agent, "crashing")[-1] > 1
    assert controlplane.get("pod", f"meanwhile-{NODE}") is None

    gate.reopen()
    back = time.monotonic()
    controlplane.wait_for(leaving, lambda found: found is None, seconds=CONVERGED)
    controlplane.wait_for(f"meanwhile-{NODE}", is_ready, seconds=CONVERGED)
    controlplane.wait_for("created", is_ready, seconds=CONVERGED)
    controlplane.wait_for(
        "crashing",
        lambda found: told_restarts(found) == instances_of(gated_agent, "crashing")[-1],
        seconds=CONVERGED,
    )
    assert time.monotonic() - back < CONVERGED

    after = controlplane.pods()
    for name in [*names[1:], f"before-{NODE}"]:
        assert after[name]["status"] == before[name]["status"]
    assert logs_of(gated_agent, "steady") == {path for path in ran if f"_{leaving}_" not in path}
    assert ready_condition(controlplane) == heartbeat


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
    wait_for_log(gated_agent, "static", 30)
    time.sleep(5)
    gate.reopen()
    controlplane.wait_for(f"static-{NODE}", is_ready, seconds=CONVERGED)
    controlplane.apply(api_pod("later"))
    controlplane.wait_for("later", is_ready)
    after = controlplane.pods()
    for name in names:
        assert after[name]["status"] == before[name]["status"]
    assert logs_of(gated_agent, "kept") == ran


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


def wait_for_log(agent: Agent, name: str, seconds: float) -> None:
    """Waits until a container of the pod ran."""
    deadline = time.monotonic() + seconds
    while not logs_of(agent, name):
        assert time.monotonic() < deadline, agent.tail_of_log()
        time.sleep(0.1)


def told_restarts(found: Plain | None) -> int:
    """The restarts that the API knows of."""
    statuses = (found or {}).get("status", {}).get("containerStatuses", [])
    return int(statuses[0]["restartCount"]) if statuses else -1
