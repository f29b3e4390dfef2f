"""100 volumes in 30 pods come and go, while agent, driver and attacher are killed and the node is rebooted."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import running_control_plane
from tests.fakes.agent import NODE
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, is_ready
from tests.fakes.csi_sidecars import asked_for
from tests.storage.node import OTHER, StorageNode, storage_node, until, volume_and_claim, writing_pod

pytestmark = [pytest.mark.containerd, pytest.mark.go, pytest.mark.timeout(3600)]

PODS, VOLUMES = 30, 100
FAULT_EVERY = 25.0
"""Seconds."""
STEPS = (
    ("ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"),
    ("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume"),
)
"""Of a volume's way to a pod, and back."""


@pytest.fixture(scope="module")
def seconds() -> float:
    return asked_for()


@pytest.fixture(scope="module")
def plane(seconds: float) -> Iterator[ControlPlane]:
    with running_control_plane() as found:
        yield found


@pytest.fixture
def node(plane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path) -> Iterator[StorageNode]:
    with storage_node(plane, containerd, tmp_path, options=["--make-missing"]) as found:
        yield found


class Churn:
    """Pods that are deleted and made anew, each with volumes of its own, and how often each was Ready."""

    def __init__(self, node: StorageNode, dice: random.Random) -> None:
        self.node, self.dice = node, dice
        self.volumes = {f"p{number}": [f"v{one}" for one in range(number, VOLUMES, PODS)] for number in range(PODS)}
        self.written: Counter[str] = Counter()
        self._counted: set[str] = set()

    def step(self, *, deletes: bool = True) -> None:
        """Counts who is Ready, deletes some of them, makes those that are gone."""
        found = self.node.pods()
        gone = [name for name in self.volumes if name not in found]
        doomed = []
        for name, pod in found.items():
            init = pod["status"].get("initContainerStatuses", [{}])[0]
            failed = init.get("lastState", {}).get("terminated") or {}
            assert failed.get("exitCode", 0) in (0, 137, 143, 255), (name, failed, self._log(name))
            if is_ready(pod) and pod["metadata"]["uid"] not in self._counted:
                self._counted.add(pod["metadata"]["uid"])
                self.written[name] += 1
            deleted = "deletionTimestamp" in pod["metadata"]
            if deletes and is_ready(pod) and not deleted and self.dice.random() < 0.4:
                doomed.append(name)
        if doomed:
            self.node.plane.kubectl("delete", "pod", *doomed, "--wait=false")
        if gone:
            self.node.plane.apply(*(self._pod(name) for name in gone))

    def is_whole(self) -> bool:
        """Whether all pods are Ready; makes those that are gone."""
        self.step(deletes=False)
        return not self.missing()

    def missing(self) -> list[str]:
        """Pods that are not Ready."""
        found = self.node.pods()
        return [name for name in self.volumes if not is_ready(found.get(name))]

    def _pod(self, name: str) -> dict[str, Any]:
        inline = self.dice.random() < 0.3
        return writing_pod(name, self.volumes[name], written=self.written[name], inline=inline)

    def _log(self, name: str) -> str:
        return self.node.plane.kubectl("logs", name, "-c", "write", check=False)


def test_100_volumes_in_30_pods_lose_nothing_and_leave_nothing(node: StorageNode, seconds: float) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    churn = Churn(node, random.Random(seed))
    node.plane.apply(*(one for number in range(VOLUMES) for one in volume_and_claim(f"v{number}")))
    faults = [node.kill_agent, node.kill_driver, node.kill_attacher, node.kill_agent, node.reboot]
    end, next_fault, done = time.monotonic() + seconds, time.monotonic() + FAULT_EVERY, Counter[str]()
    while time.monotonic() < end:
        churn.step()
        assert node.driver.wrongs() == []
        if time.monotonic() > next_fault:
            fault = faults[sum(done.values()) % len(faults)]
            fault()
            done[fault.__name__] += 1
            next_fault = time.monotonic() + FAULT_EVERY
        time.sleep(0.5)
    until(churn.is_whole, 300, churn.missing)
    node.plane.kubectl("delete", "pod", "--all", "--wait=false")
    until(lambda: not node.pods(), 300, lambda: list(node.pods()))
    node.assert_nothing_left()
    print(f"{sum(churn.written.values())} pods were Ready, {len(node.driver.calls())} calls; faults: {dict(done)}")
    assert all(churn.written[name] for name in churn.volumes)
    if seconds >= 300:
        assert set(done) == {"kill_agent", "kill_driver", "kill_attacher", "reboot"}


@pytest.mark.parametrize("method", STEPS[0])
def test_an_agent_killed_during_a_call_on_the_way_in_goes_on(node: StorageNode, method: str) -> None:
    node.plane.apply(*volume_and_claim("killed"))
    node.driver.hold(method)
    node.plane.apply(writing_pod("killed", ["killed"]))
    time.sleep(3)  # the call may have begun: a kill before it must be as good
    node.agent.kill()
    node.driver.hold()
    node.agent.start()
    node.plane.wait_for("killed", is_ready, seconds=240)
    node.plane.kubectl("delete", "pod", "killed", "--wait=false")
    node.assert_nothing_left()


@pytest.mark.parametrize("method", STEPS[1])
def test_an_agent_killed_during_a_call_on_the_way_out_leaves_nothing(node: StorageNode, method: str) -> None:
    node.plane.apply(*volume_and_claim("killed"))
    node.plane.apply(writing_pod("killed", ["killed"]))
    node.plane.wait_for("killed", is_ready, seconds=240)
    node.driver.hold(method)
    node.plane.kubectl("delete", "pod", "killed", "--wait=false")
    time.sleep(4)
    node.agent.kill()
    node.driver.hold()
    node.agent.start()
    node.assert_nothing_left()


def test_a_pod_that_is_deleted_by_force_keeps_its_disk_from_the_other_node_until_it_is_off(node: StorageNode) -> None:
    node.plane.apply(*volume_and_claim("forced"), writing_pod("here", ["forced"]))
    node.plane.wait_for("here", is_ready, seconds=240)
    node.driver.hold("NodeUnpublishVolume")
    node.plane.kubectl("delete", "pod", "here", "--grace-period=0", "--force")
    node.plane.apply(writing_pod("there", ["forced"], node=OTHER))
    time.sleep(20)
    assert [one["spec"]["nodeName"] for one in node.attachments()] == [NODE]
    node.driver.hold()
    until(lambda: "ControllerUnpublishVolume" in node.driver.methods("forced"))
    until(lambda: [one["spec"]["nodeName"] for one in node.attachments()] == [OTHER])
    methods = node.driver.methods("forced")
    assert methods.index("NodeUnstageVolume") < methods.index("ControllerUnpublishVolume")
    assert node.driver.wrongs() == []


def test_a_node_that_was_given_up_for_dead_undoes_what_was_taken_from_it(node: StorageNode) -> None:
    node.plane.apply(*volume_and_claim("lost"), writing_pod("here", ["lost"]))
    node.plane.wait_for("here", is_ready, seconds=240)
    node.agent.kill()
    until(lambda: not is_ready(node.plane.get("node", NODE)), 240)
    node.plane.kubectl("taint", "node", NODE, "node.kubernetes.io/out-of-service=x:NoExecute")
    node.plane.kubectl("delete", "pod", "here", "--grace-period=0", "--force", check=False)
    # By force: the volume is still mounted here, and no agent says so.
    until(lambda: not node.attachments(), 240, node.attachments)
    assert node.mounted()
    node.plane.kubectl("taint", "node", NODE, "node.kubernetes.io/out-of-service-")
    node.agent.start()
    until(lambda: not node.mounted(), 240, node.mounted)
    until(lambda: not node.notes() and not node.in_use() and not node.driver.loops(), 240)
