"""Cgroups with the systemd driver: slices over a real bus, folders that behave as the kernel's do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from glasslet.api.pod_ref import pod_ref
from glasslet.concurrency.clock import SystemClock
from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.host.cgroups.slices import SystemdSlices
from glasslet.host.systemd.bus import SystemBus
from glasslet.host.systemd.errors import BusAway
from glasslet.host.systemd.units import SystemdUnits
from glasslet.record.store import Record
from glasslet.resources.layout import CgroupLayout
from glasslet.resources.node_cgroups import CgroupSetupFailed, NodeCgroups
from glasslet.resources.node_rules import NodeRules, Reservation
from tests.component.cgroup_world import World, burstable
from tests.fakes.background import in_background
from tests.fakes.system_bus import FakeSystem, system_bus

POD = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda_1.slice"
UNIT = "kubepods-burstable-poda_1.slice"


class SystemdWorld(World):
    """A machine whose cgroups systemd makes."""

    def __init__(self, folder: Path, address: str, system: FakeSystem) -> None:
        self.system = system
        self.slow_record = Record(clock=SystemClock())
        self.bus = SystemBus(address=address, recorder=self.slow_record)
        units = SystemdUnits(bus=self.bus, recorder=self.slow_record, within=0.3)
        super().__init__(folder, CgroupLayout(systemd=True), slices=SystemdSlices(units=units, version=1))

    def node(self, *reservations: Reservation) -> NodeCgroups:
        return NodeCgroups(
            manager=self.manager,
            rules=NodeRules(layout=self.layout, limits=CgroupLimits(cpu_shares=2048), reservations=reservations),
            classes=self.classes,
            events=lambda *words: None,
            recorder=self.record,
        )


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[SystemdWorld]:
    system = FakeSystem()
    async with system_bus(tmp_path, system) as address:
        made = SystemdWorld(tmp_path / "cgroups", address, system)
        yield made
        made.bus.close()
        await asyncio.sleep(0)


async def test_slices_are_made_from_the_top_down(world: SystemdWorld) -> None:
    await world.node().start()
    await world.pods.ensure(burstable("a-1"))
    assert world.system.order == [
        "+kubepods.slice",
        "+kubepods-burstable.slice",
        "+kubepods-besteffort.slice",
        f"+{UNIT}",
    ]


async def test_a_pods_slice_has_its_limits_as_properties_and_in_files(world: SystemdWorld) -> None:
    # Upstream: "Set sends SetUnitProperties (runtime), then writes the cgroup files"
    assert await world.pods.ensure(burstable("a-1", "500m")) == POD
    assert world.system.units[UNIT]["CPUShares"] == 512
    assert world.system.units[UNIT]["Wants"] == ["kubepods-burstable.slice"]
    assert world.shares(POD) == "512"


async def test_a_resize_changes_property_and_file(world: SystemdWorld) -> None:
    await world.pods.ensure(burstable("a-1", "500m"))
    await world.pods.adjust(burstable("a-1", "1"))
    assert (world.system.units[UNIT]["CPUShares"], world.shares(POD)) == (1024, "1024")


async def test_a_removed_pod_leaves_neither_unit_nor_folder(world: SystemdWorld) -> None:
    pod = burstable("a-1")
    await world.pods.ensure(pod)
    await world.pods.remove(pod_ref(pod))
    assert UNIT not in world.system.units
    assert not world.machine.tree.exists(POD)


async def test_the_next_agent_takes_over_the_slice_of_the_last(world: SystemdWorld) -> None:
    await world.pods.ensure(burstable("a-1", "500m"))
    world.system.units[UNIT]["CPUShares"] = 7
    assert await world.agent().ensure(burstable("a-1", "500m")) == POD
    assert world.system.units[UNIT]["CPUShares"] == 512
    assert world.system.order == [f"+{UNIT}"]


async def test_an_orphan_of_an_earlier_agent_goes_with_its_unit(world: SystemdWorld) -> None:
    await world.node().start()
    await world.pods.ensure(burstable("a-1"))
    found = await world.agent().found()
    assert {str(uid): path for uid, path in found.items()} == {"a-1": POD}
    (uid,) = found
    await world.agent().remove_orphan(uid, POD, lambda: True)
    assert UNIT not in world.system.units


async def test_a_systemd_that_hangs_holds_up_new_pods_alone(world: SystemdWorld) -> None:
    await world.pods.ensure(burstable("a-1"))
    world.system.hangs = True

    async def new_pod() -> None:
        with pytest.raises(BusAway, match=r"kubepods-burstable-podb\.slice: no answer over D-Bus"):
            await world.pods.ensure(burstable("b"))

    async with in_background(new_pod):
        await asyncio.sleep(0.1)
        assert await world.pods.ensure(burstable("a-1")) == POD
        assert [wait.on for wait in world.slow_record.live_waits()] == [
            "systemd: StartTransientUnit kubepods-burstable-podb.slice"
        ]
        await asyncio.sleep(0.4)
    world.system.hangs = False
    assert (await world.pods.ensure(burstable("b"))).endswith("podb.slice")


async def test_a_limit_that_systemd_refuses_is_a_finding_and_the_pod_runs(world: SystemdWorld) -> None:
    # Upstream: "A Set error is only logged ..., the creation counts as done"
    world.system.refuses["SetUnitProperties"] = "org.freedesktop.DBus.Error.InvalidArgs"
    pod = burstable("a-1")
    assert await world.pods.ensure(pod) == POD
    assert any("InvalidArgs" in text for text in world.record.standing_of(pod_ref(pod)).findings())


@pytest.mark.parametrize("name", ["/system.slice", "system.slice", "/system"])
async def test_a_reserved_cgroup_is_the_administrators_slice(world: SystemdWorld, name: str) -> None:
    # Upstream: "`/system.slice`, `system.slice` and `/system` all mean system.slice"
    world.machine.tree.create("/system.slice")
    reservation = Reservation(side="System", path=name, limits=CgroupLimits(cpu_shares=300))
    await world.node(reservation).start()
    assert world.system.units["system.slice"] == {"CPUShares": 300}
    assert world.shares("/system.slice") == "300"


async def test_a_start_without_systemds_answer_says_what_it_waited_for(world: SystemdWorld) -> None:
    world.system.hangs = True
    with pytest.raises(CgroupSetupFailed, match=r"failed to initialize top level QOS containers: .*kubepods\.slice"):
        await world.node().start()
