"""The worlds that several files of troubles share: a control plane starts once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import cluster_member, joined, running_control_plane
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane
from tests.fakes.registry import Registry
from tests.troubles.world import ClusterWorld


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """A control plane."""
    with running_control_plane("-controller-manager-flags", "--node-monitor-grace-period=300s") as made:
        yield made


@pytest.fixture(scope="session")
def cluster(
    plane: ControlPlane, containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterWorld]:
    """A node that is Ready, of a real API server."""
    folder = tmp_path_factory.mktemp("k")
    agent = cluster_member(plane, containerd, folder)
    with Registry(folder) as registry, joined(plane, containerd, agent):
        yield ClusterWorld(agent, plane, containerd, registry)
