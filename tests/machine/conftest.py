"""The machine of a session. Every run has a disk of its own above the prepared one; it is off at the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import control_plane
from tests.fakes.control_plane import ControlPlane
from tests.machine import image
from tests.machine.node import Node, layer, prepared_disk
from tests.machine.qemu import Hardware, Machine, connect_uplink
from tests.skips import on_purpose

LANE = os.environ.get("GLASSLET_MACHINE", "")
"""`short`, `long`, or empty outside of scripts/test-machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A machine takes minutes: only its own script runs these."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(900))
            if not LANE:
                item.add_marker(pytest.mark.skip(reason=on_purpose("scripts/test-machine runs the machine's tests")))


@pytest.fixture(scope="session")
def controlplane() -> Iterator[ControlPlane]:
    """It listens on the tap as well, and gives no node up: a machine that boots is away for longer than others."""
    if missing := image.missing_requirement() or control_plane.missing_requirement():
        pytest.skip(f"MACHINE TESTS NOT RUN: {missing}")
    patience = ("-controller-manager-flags", "--node-monitor-grace-period=900s")
    plane = ControlPlane(*patience, "-apiserver-flags", "--bind-address=0.0.0.0", "-timeout", "10m", node=image.NODE)
    try:
        plane.wait_for_default_service_account()
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    """Switched on, without a node's configuration."""
    if missing := image.missing_requirement():
        pytest.skip(f"MACHINE TESTS NOT RUN: {missing}")
    connect_uplink()
    built = image.build()
    prepared = prepared_disk(built, Path(os.environ["GLASSLET_MACHINE_PACKAGE"]))
    with tempfile.TemporaryDirectory(prefix="glm-") as name:
        folder = Path(name)
        made = Machine(built, layer(prepared, "qcow2", folder / "disk"), folder, Hardware())
        try:
            made.start()
            yield made
        finally:
            made.cut_power()


@pytest.fixture(scope="session")
def joined(controlplane: ControlPlane, machine: Machine) -> Node:
    """The node, which was Ready once."""
    made = Node(machine, controlplane)
    made.join()
    return made


@pytest.fixture
def node(joined: Node) -> Iterator[Node]:
    """Ready, with the usual configuration; no pod is left afterwards."""
    joined.switch_on()
    yield joined
    joined.switch_on()
    joined.delete_pods()
