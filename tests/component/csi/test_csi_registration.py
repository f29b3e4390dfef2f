"""CSI drivers register, are shown on the node, and go, over real gRPC."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from grpc import StatusCode

from glasslet.kubeapi.errors import Conflict, Unavailable
from glasslet.plugin_registry import watcher
from glasslet.volumes.csi import publication
from glasslet.volumes.csi._generated import csi_pb2 as messages
from tests.component.csi_world import NODE, api_server, csi_world, driver_in
from tests.fakes.csi_driver import FakeCSIDriver

NODE_IDS = "csi.volume.kubernetes.io/nodeid"
ZONE = "topology.example/zone"


def says(zone: str = "z1", limit: int = 3) -> messages.NodeGetInfoResponse:
    topology = messages.Topology(segments={ZONE: zone})
    return messages.NodeGetInfoResponse(node_id="id-7", max_volumes_per_node=limit, accessible_topology=topology)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "_FIRST_PAUSE", 0.02)
    monkeypatch.setattr(publication, "_FIRST_PAUSE", 0.02)


async def test_a_registered_driver_is_in_csinode_and_on_the_node(tmp_path: Path) -> None:
    # behaviours.md §23: "result: CSINode driver entry (nodeID, topologyKeys, allocatable.count), topology labels on the
    # Node, annotation csi.volume.kubernetes.io/nodeid; NotifyRegistrationStatus."
    async with csi_world(tmp_path) as world, driver_in(world, info=says()) as driver:
        assert driver.told == [(True, "")]
        entry = {"name": "d.example", "nodeID": "id-7", "topologyKeys": [ZONE], "allocatable": {"count": 3}}
        assert world.shown() == [entry]
        meta = world.node()["metadata"]
        assert json.loads(meta["annotations"][NODE_IDS]) == {"d.example": "id-7"}
        assert meta["labels"] == {"kubernetes.io/hostname": NODE, ZONE: "z1"}


async def test_csinode_is_the_nodes_and_names_the_migrated_plugins(tmp_path: Path) -> None:
    # behaviours.md §23: "CSINode also holds annotation storage.alpha.kubernetes.io/migrated-plugins and an
    # ownerReference to the Node."
    async with csi_world(tmp_path) as world:
        await world.until(lambda: not world.publication.problem())
        found = world.server.get_plain("csinodes", "", NODE)
        assert found is not None
        owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "node-uid"}
        assert found["metadata"]["ownerReferences"] == [owner]
        assert "kubernetes.io/vsphere-volume" in found["metadata"]["annotations"][
            "storage.alpha.kubernetes.io/migrated-plugins"
        ].split(",")
        assert found["spec"] == {"drivers": []}


async def test_a_driver_whose_socket_goes_is_taken_back_and_its_labels_stay(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world, driver_in(world, info=says()) as driver:
        await driver.unregister()
        await world.until(lambda: NODE_IDS not in world.node()["metadata"].get("annotations", {}))
        assert world.names() == []
        assert world.node()["metadata"]["labels"][ZONE] == "z1"
        assert not world.drivers.all()


async def test_a_driver_comes_back_under_another_socket(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world, driver_in(world) as driver:
        await driver.unregister()
        await world.until(lambda: not world.drivers.all())
        await driver.register("other.sock")
        await world.until(lambda: len(driver.told) == 2)
        assert driver.told[-1] == (True, "")
        assert world.names() == ["d.example"]


async def test_a_socket_made_anew_at_the_same_path_is_never_refused_as_a_second_driver(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world, driver_in(world) as driver:
        await driver.unregister()
        await driver.register()
        await world.until(lambda: len(driver.told) == 2)
        assert driver.told == [(True, ""), (True, "")]


async def test_two_drivers_are_both_shown(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world, driver_in(world, "a.example"), driver_in(world, "b.example"):
        assert sorted(world.names()) == ["a.example", "b.example"]
        assert set(json.loads(world.node()["metadata"]["annotations"][NODE_IDS])) == {"a.example", "b.example"}


async def test_nodegetinfo_that_fails_is_tried_again_while_the_socket_is_there(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        failing = {"NodeGetInfo": (StatusCode.INTERNAL, "cloud is away")}
        async with driver_in(world, failing=failing) as driver:
            text = "RegisterPlugin error -- plugin registration failed with err: rpc error: code = Internal desc = "
            assert driver.told[0] == (False, f"{text}cloud is away")
            driver.failing.clear()
            await world.until(lambda: driver.told[-1] == (True, ""))
            assert world.names() == ["d.example"]


async def test_a_csinode_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        await world.until(lambda: not world.publication.problem())
        world.server.fail_next(Unavailable, verb="PUT", path="csinodes")
        async with driver_in(world) as driver:
            assert driver.told[0][0] is False
            await world.until(lambda: driver.told[-1] == (True, ""))
            assert world.names() == ["d.example"]


async def test_a_csinode_that_changed_meanwhile_is_read_again(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        await world.until(lambda: not world.publication.problem())
        world.server.fail_next(Conflict, verb="PUT", path="csinodes", times=2)
        async with driver_in(world) as driver:
            assert driver.told == [(True, "")]


async def test_a_label_of_someone_else_is_never_changed(tmp_path: Path) -> None:
    server = api_server()
    server.change("nodes", "", NODE, {"metadata": {"labels": {ZONE: "z9"}}})
    async with csi_world(tmp_path, server) as world, driver_in(world, info=says("z1")) as driver:
        assert 'detected topology value collision: driver reported "topology.example/zone":"z1"' in driver.told[0][1]
        assert world.node()["metadata"]["labels"][ZONE] == "z9"
        assert world.names() == []


async def test_a_driver_changes_the_value_of_a_label_that_it_brought_also_after_a_restart(tmp_path: Path) -> None:
    server = api_server()
    async with csi_world(tmp_path, server) as world:
        driver = FakeCSIDriver(tmp_path / "plugins")
        driver.info = says("z1")
        await driver.serve()
        await driver.register()
        await world.until(lambda: driver.told)
    driver.info = says("z2")
    async with csi_world(tmp_path, server) as world:
        await world.until(lambda: len(driver.told) == 2)
        assert driver.told[-1] == (True, "")
        assert world.node()["metadata"]["labels"][ZONE] == "z2"
        await driver.stop()


async def test_the_node_is_not_ready_before_its_csinode_is_there(tmp_path: Path) -> None:
    server = api_server()
    server.fail_next(Unavailable, verb="GET", path="csinodes", times=2, message="away")
    async with csi_world(tmp_path, server) as world:
        assert world.publication.problem() == "CSINode is not yet initialized"
        await world.until(lambda: world.publication.problem() == "failed to initialize CSINode: away")
        await world.until(lambda: not world.publication.problem())


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ([], "Plugin returned an empty list for supported versions"),
        (["0.3.0", "2.0.0"], 'None of the versions specified ["0.3.0" "2.0.0"] are supported.'),
    ],
)
async def test_a_driver_of_another_version_is_refused(tmp_path: Path, versions: list[str], said: str) -> None:
    async with csi_world(tmp_path) as world, driver_in(world, versions=versions) as driver:
        assert driver.told[0][0] is False
        assert said in driver.told[0][1]
        assert not driver.calls


async def test_a_second_socket_of_a_name_must_offer_a_higher_version(tmp_path: Path) -> None:
    # behaviours.md §23: "A second registration of a name must offer a higher version."
    async with csi_world(tmp_path) as world, driver_in(world) as first:
        second = FakeCSIDriver(tmp_path / "elsewhere" / "plugins")
        second.registry = first.registry
        await second.serve()
        await second.register("second.sock")
        await world.until(lambda: second.told)
        assert "already registered with a higher supported version" in second.told[0][1]
        second.versions = ["1.1.0"]
        await world.until(lambda: second.told[-1] == (True, ""))
        assert world.drivers.get("d.example").endpoint == str(second.socket)
        await second.stop()


async def test_a_driver_that_waits_for_its_older_self_registers_as_soon_as_that_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "_FIRST_PAUSE", 3600.0)
    async with csi_world(tmp_path) as world, driver_in(world) as older:
        newer = FakeCSIDriver(tmp_path / "newer" / "plugins")
        newer.registry = older.registry
        await newer.serve()
        await newer.register("newer.sock")
        await world.until(lambda: newer.told)
        assert newer.told[0][0] is False
        (older.registry / "d.example-reg.sock").unlink()
        await world.until(lambda: newer.told[-1] == (True, ""))
        assert world.drivers.get("d.example").endpoint == str(newer.socket)
        await newer.stop()
