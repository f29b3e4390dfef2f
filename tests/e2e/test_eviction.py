"""Pods that are evicted, on a real API server and a real runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from glasslet.answers.words import size_words
from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain, condition, is_ready, phase

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(240)]

ENDS_BADLY = "trap 'exit 3' TERM; while :; do sleep 0.1; done"
"""An evicted pod whose containers end with 0 has succeeded."""
NO_THRESHOLD = {"memory.available": "0%"}
MOST_OF_IT = {"memory.available": "99%"}
"""A threshold that every machine is below."""


@pytest.fixture
def member(controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path) -> Iterator[Agent]:
    """An agent without thresholds whose sizes of volumes are at most a second old."""
    agent = cluster_member(
        controlplane,
        containerd,
        tmp_path,
        evictionHard=NO_THRESHOLD,
        volumeStatsAggPeriod="1s",
        enforceNodeAllocatable=[],
    )
    with joined(controlplane, containerd, agent):
        yield agent


def writing(name: str, command: str, **limits: str) -> Plain:
    """A pod that writes to its emptyDir or its own layer, then stays. `limits`: of its container."""
    pod = api_pod(name, f"{command}; {ENDS_BADLY}")
    pod["spec"]["volumes"] = [{"name": "data", "emptyDir": {"sizeLimit": "1Mi"}}]
    (main,) = pod["spec"]["containers"]
    main["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    if limits:
        main["resources"] = {"limits": {key.replace("_", "-"): value for key, value in limits.items()}}
    return pod


def is_evicted(found: Plain | None) -> bool:
    return phase(found) == "Failed" and (found or {})["status"].get("reason") == "Evicted"


def is_under_memory_pressure(found: Plain | None) -> bool:
    return condition(found, "MemoryPressure") == "True"


def test_pods_above_their_limits_of_local_storage_are_evicted(controlplane: ControlPlane, member: Agent) -> None:
    # behaviours.md §15: "limits: `Usage of EmptyDir volume "<v>" exceeds the limit "<q>". `,"
    blocks = "dd if=/dev/zero bs=1024 count={} of={} 2>/dev/null"
    controlplane.apply(
        writing("large-volume", blocks.format(3000, "/data/file")),
        writing("small-volume", blocks.format(500, "/data/file")),
        writing("large-layer", blocks.format(3000, "/file"), ephemeral_storage="2Mi"),
    )
    controlplane.wait_for("small-volume", is_ready)
    evicted = {name: controlplane.wait_for(name, is_evicted) for name in ("large-volume", "large-layer")}
    messages = {name: (found or {})["status"]["message"] for name, found in evicted.items()}
    assert messages == {
        "large-volume": 'Usage of EmptyDir volume "data" exceeds the limit "1Mi". ',
        "large-layer": "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ",
    }
    assert controlplane.wait_for_event("large-volume", "Evicted") == messages["large-volume"]
    assert condition(evicted["large-volume"], "DisruptionTarget") == ""
    assert is_ready(controlplane.get("pod", "small-volume"))


def test_a_node_under_memory_pressure_evicts_and_refuses(
    controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path
) -> None:
    # behaviours.md §15: "Conditions: memory.available gives MemoryPressure;"
    agent = cluster_member(controlplane, containerd, tmp_path, evictionHard=MOST_OF_IT, enforceNodeAllocatable=[])
    requests = {"resources": {"requests": {"memory": "1Mi"}}}
    with joined(controlplane, containerd, agent):
        controlplane.wait_for(NODE, is_under_memory_pressure, kind="node")
        burstable = api_pod("burstable", ENDS_BADLY)
        burstable["spec"]["containers"][0] |= requests
        for pod in (burstable, api_pod("best-effort")):
            pod["spec"] |= {"nodeName": NODE, "tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}
            controlplane.apply(pod)
        refused = controlplane.wait_for("best-effort", is_evicted)
        assert (refused or {})["status"]["message"] == "Pod was rejected: The node had condition: [MemoryPressure]. "
        evicted = controlplane.wait_for("burstable", is_evicted)
        assert condition(evicted, "DisruptionTarget") == "True"
        assert (evicted or {})["status"]["message"].startswith("The node was low on resource: memory. ")
        assert ("EvictionThresholdMet", "Attempting to reclaim memory") in controlplane.events(NODE)


def test_a_node_explains_its_pressure_with_figures_of_the_machine(controlplane: ControlPlane, member: Agent) -> None:
    controlplane.apply(api_pod("quiet"))
    controlplane.wait_for("quiet", is_ready)
    answer = asyncio.run(member.ask("/glass/v1/node/eviction?signal=memory.available"))
    signals = {one["signal"]: one for one in answer["signals"]}
    memory = signals["memory.available"]
    assert memory["how"].startswith(f"{size_words(memory['available'])} = capacity {size_words(memory['capacity'])} - ")
    assert "page cache that counts as free" in memory["how"]
    assert memory["source"].startswith("MemTotal of /proc/meminfo, memory")
    assert signals["pid.available"]["available"] > 0
    (quiet,) = answer["order"]
    assert (quiet["pod"], quiet["stays"], quiet["usage"] > 0) == ("default/quiet", "", True)
    labels = [one["label"] for one in asyncio.run(member.ask("/glass/v1/node/why"))["evidence"]]
    assert labels[-1] == "eviction"
    assert "memory.available" in labels
