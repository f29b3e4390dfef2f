"""A real control plane, a real runtime, and the agent as a process between them."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd, unmount_below
from tests.fakes.control_plane import ControlPlane, is_ready, missing_requirement


@pytest.fixture(scope="session")
def controlplane() -> Iterator[ControlPlane]:
    """One for the whole session; tests use names of their own and clear up."""
    # Nobody gives a node up while a test keeps it from the API server, as nobody would if that were dead.
    with running_control_plane("-controller-manager-flags", "--node-monitor-grace-period=300s") as plane:
        yield plane


@contextlib.contextmanager
def running_control_plane(*options: str) -> Iterator[ControlPlane]:
    """One of its own, where there can be one; pods can be created while the body runs."""
    if missing := missing_requirement():
        pytest.skip(f"needs a control plane: {missing}")
    plane = ControlPlane(*options, node=NODE)
    try:
        plane.wait_for_default_service_account()
        yield plane
    finally:
        plane.stop()
        forget_loopback_address()


@pytest.fixture
def cluster_agent(controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path) -> Iterator[Agent]:
    """An agent of the node `node-a` that is Ready; afterwards its pods and its node are gone."""
    agent = cluster_member(controlplane, containerd, tmp_path)
    with joined(controlplane, containerd, agent):
        yield agent


@contextlib.contextmanager
def joined(controlplane: ControlPlane, containerd: PrivateContainerd, agent: Agent) -> Iterator[None]:
    """The agent runs and its node is Ready while the body does; afterwards its pods and its node are gone."""
    controlplane.forget_refusals()
    agent.start()
    try:
        controlplane.wait_for(NODE, is_ready, kind="node")
        yield
    finally:
        agent.kill()
        controlplane.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
        containerd.remove_all_pods()
        unmount_below(agent.folder)
        agent.remove_log_links()
        controlplane.kubectl("delete", "node", NODE, "--ignore-not-found")


def cluster_member(controlplane: ControlPlane, containerd: PrivateContainerd, folder: Path, **changed: object) -> Agent:
    """An agent with the node's kubeconfig, not started yet. `changed`: fields of the configuration."""
    address = loopback_address()
    authentication = {
        "x509": {"clientCAFile": controlplane.ca},
        "webhook": {"enabled": False},
        "anonymous": {"enabled": False},
    }
    agent = Agent(folder, containerd, **{"address": address, "authentication": authentication, **changed})
    agent.flags = ("--kubeconfig", controlplane.node_kubeconfig, "--node-ip", address)
    return agent


def loopback_address() -> str:
    """An address for the node where only this machine reaches it: a kubelet refuses 127.0.0.1 and its like."""
    address = f"198.18.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}"
    subprocess.run(["ip", "address", "replace", f"{address}/32", "dev", "lo"], check=True)
    return address


def forget_loopback_address() -> None:
    """Takes it away again; who needs it asks for it anew."""
    subprocess.run(["ip", "address", "del", f"{loopback_address()}/32", "dev", "lo"], check=True)
