"""CSI drivers in trouble: one that does not answer, one that answers an error, one that is gone."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import NODE
from tests.troubles.table import Plain, Trouble, each_chosen
from tests.troubles.world import ClusterWorld, bound_pod

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

AREA = "CSI drivers"
DRIVER = "d.example"


def with_inline_volume(name: str) -> Any:
    """A pod with a volume of its own from the driver."""

    def manifest(_: ClusterWorld) -> Plain:
        pod = bound_pod(name, volumes=[{"name": "data", "csi": {"driver": DRIVER}}])
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        return pod

    return manifest


def driven(name: str, made: str, *says: str) -> Trouble:
    """A pod with a volume of that driver."""
    says = ("volume data (CSI driver d.example)", *says)
    return Trouble(name=name, made=made, rule=Rule.VOLUME_NOT_READY, says=says, pod=with_inline_volume(name))


HANGS = driven("csi-hangs", "the CSI driver does not answer", "CSI driver d.example: NodePublishVolume runs for ",
               "(of at most 2 min)")  # fmt: skip
FAILS = driven("csi-fails", "the CSI driver answers an error",
               "(NodePublishVolume) has an internal error [Internal]: the disk is sulking")  # fmt: skip
DENIES = driven("csi-denies", "the CSI driver's backend does not let the node in",
                "(NodePublishVolume) is not allowed to [PermissionDenied]: no access for this node")  # fmt: skip
CASES = {
    HANGS: ("--hangs", "NodePublishVolume"),
    FAILS: ("--fails", "NodePublishVolume=INTERNAL=the disk is sulking"),
    DENIES: ("--fails", "NodePublishVolume=PERMISSION_DENIED=no access for this node"),
}
GONE = driven("csi-gone", "the CSI driver's process was killed after it had registered",
              "does not answer: no process listens at ", "csi.sock")  # fmt: skip
TROUBLES = (*CASES, GONE)


@contextlib.contextmanager
def driver(world: ClusterWorld, log: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A driver for volumes of pods, registered."""
    spec = {"volumeLifecycleModes": ["Ephemeral"], "attachRequired": False}
    world.plane.apply(
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec}
    )
    words = [sys.executable, "-m", "tests.fakes.csi_driver", "--root", str(world.agent.root), "--node", "node-id"]
    process = subprocess.Popen([*words, "--log", str(log), *options], cwd=Path(__file__).parents[2])
    try:
        world.plane.wait_for(NODE, lambda found: bool((found or {}).get("spec", {}).get("drivers")), kind="csinode")
        yield process
    finally:
        process.kill()
        process.wait()
        world.plane.kubectl("delete", "csinode", "--all", "--wait=false", check=False)


@each_chosen(tuple(CASES))
def test_a_driver_that_does_not_do_its_work_is_named_with_its_call(
    cluster: ClusterWorld, tmp_path: Path, trouble: Trouble
) -> None:
    with driver(cluster, tmp_path / "calls", *CASES[trouble]):
        cluster.put(trouble)
        cluster.shows(trouble)
    cluster.plane.kubectl("delete", "pod", trouble.name, "--grace-period=0", "--force", "--wait=false")


@each_chosen((GONE,))
def test_a_driver_that_is_gone_is_named(cluster: ClusterWorld, tmp_path: Path, trouble: Trouble) -> None:
    with driver(cluster, tmp_path / "calls") as process:
        process.kill()
        process.wait()
        cluster.put(trouble)
        cluster.shows(trouble)
    cluster.plane.kubectl("delete", "pod", trouble.name, "--grace-period=0", "--force", "--wait=false")
