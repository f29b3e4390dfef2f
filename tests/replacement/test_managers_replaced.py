"""The Go kubelet and glasslet take over exclusive CPUs and memory of NUMA nodes from each other: each reads the state
files that the other wrote, and no container notices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.contender import contender, go_kubelet

from glasslet.host.topology import read_topology
from glasslet.managers import cpu_checkpoint, memory_checkpoint
from glasslet.managers.cpu_sets import CPUs, cpu_text, read_cpu_text
from tests.e2e.conftest import running_control_plane
from tests.e2e.test_api_pods import wait_until
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, is_ready
from tests.replacement.pods import pod, resources
from tests.replacement.test_replacement import lease_time
from tests.skips import on_purpose

CPUS = frozenset(cpu.id for cpu in read_topology().cpus)
SYSTEM = frozenset({min(CPUS)})
pytestmark = [
    pytest.mark.containerd,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not int(os.environ.get("GLASSLET_REPLACEMENTS", "0")),
        reason=on_purpose("scripts/test-replacement replaces kubelets"),
    ),
    pytest.mark.skipif(len(CPUS) < 2, reason="one CPU cannot be shared and given out"),
]
STATIC: dict[str, Any] = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": cpu_text(SYSTEM),
    "memoryManagerPolicy": "Static",
    "systemReserved": {"memory": "50Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
    "topologyManagerPolicy": "single-numa-node",
}
FILES = (cpu_checkpoint.FILE, memory_checkpoint.FILE)
ALONE = resources(cpu="1", memory="32Mi")


@pytest.fixture(scope="module")
def controlplane() -> Iterator[ControlPlane]:
    with running_control_plane() as plane:
        yield plane


@pytest.fixture
def agent(controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path) -> Iterator[Agent]:
    with contender(tmp_path, controlplane, containerd, **STATIC) as made:
        yield made


def test_each_goes_on_with_the_cpus_and_memory_that_the_other_gave_out(
    controlplane: ControlPlane, containerd: PrivateContainerd, agent: Agent
) -> None:
    go, glasslet = (str(go_kubelet()),), agent.program
    agent.program = go
    agent.start()
    controlplane.wait_for(NODE, is_ready, kind="node")
    controlplane.apply(pod("first", ALONE), pod("quiet"))
    for name in ("first", "quiet"):
        controlplane.wait_for(name, is_ready, seconds=180)
    assert len(exclusive(agent)) == 1

    _taken_over(controlplane, containerd, agent, glasslet)
    own = exclusive(agent)
    wait_until(lambda: allowed(controlplane, containerd, "first") == own)
    wait_until(lambda: allowed(controlplane, containerd, "quiet") == CPUS - own)
    # glasslet frees them, and gives them out again.
    controlplane.kubectl("delete", "pod", "first", "--grace-period=1")
    controlplane.apply(pod("second", ALONE))
    controlplane.wait_for("second", is_ready, seconds=180)
    assert allowed(controlplane, containerd, "second") == exclusive(agent)

    _taken_over(controlplane, containerd, agent, go)
    assert len(exclusive(agent)) == 1
    wait_until(lambda: allowed(controlplane, containerd, "quiet") == CPUS - exclusive(agent))
    # The Go kubelet frees them with the next look for stale states.
    controlplane.kubectl("delete", "pod", "second", "--grace-period=1")
    wait_until(lambda: not exclusive(agent))
    wait_until(lambda: allowed(controlplane, containerd, "quiet") == CPUS)

    _taken_over(controlplane, containerd, agent, glasslet)
    assert not exclusive(agent)


def _taken_over(plane: ControlPlane, runtime: PrivateContainerd, agent: Agent, program: tuple[str, ...]) -> None:
    """The one ends, the other starts: the files are the same to the byte, the containers too."""
    before, processes = _files(agent), runtime.pids()
    renewed = lease_time(plane)
    agent.terminate()
    agent.program = program
    agent.start()
    wait_until(lambda: lease_time(plane) != renewed)
    plane.wait_for(NODE, is_ready, kind="node")
    assert _files(agent) == before, agent.tail_of_log()
    assert runtime.pids() == processes


def _files(agent: Agent) -> dict[str, bytes]:
    return {name: (agent.root / name).read_bytes() for name in FILES}


def exclusive(agent: Agent) -> CPUs:
    """The CPUs that are given out; as many pods have memory."""
    files = _files(agent)
    cpus = cpu_checkpoint.decode(files[cpu_checkpoint.FILE], policy="static", ids={})
    return cpus.exclusive()


def allowed(plane: ControlPlane, runtime: PrivateContainerd, name: str) -> CPUs:
    """The CPUs that the kernel lets the pod's container use."""
    (status,) = (plane.get("pod", name) or {})["status"]["containerStatuses"]
    pid = runtime.pids()[status["containerID"].removeprefix("containerd://")]
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return read_cpu_text(next(line for line in lines if line.startswith("Cpus_allowed_list")).rpartition("\t")[2])
