"""Units of systemd over a bus that hangs, goes away, and refuses."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from glasslet.concurrency.clock import SystemClock
from glasslet.host.systemd.bus import SystemBus
from glasslet.host.systemd.errors import BusAway, BusRefused
from glasslet.host.systemd.units import TOO_OLD, SystemdUnits, UnitFailed, UnitProperty
from glasslet.record.store import Record
from tests.fakes.background import in_background
from tests.fakes.system_bus import FakeSystem, system_bus

UNIT = "kubepods-pod1.slice"
PROPERTIES = (UnitProperty("Description", "s", "a pod"), UnitProperty("Wants", "as", ["kubepods.slice"]))


class Machine:
    """systemd, a bus to it, and an agent's end."""

    def __init__(self, address: str, system: FakeSystem) -> None:
        self.system = system
        self.record = Record(clock=SystemClock())
        self.bus = SystemBus(address=address, recorder=self.record)
        self.units = SystemdUnits(bus=self.bus, recorder=self.record, within=0.4)

    def waits(self) -> list[str]:
        return [wait.on for wait in self.record.live_waits()]


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    system = FakeSystem()
    async with system_bus(tmp_path, system) as address:
        made = Machine(address, system)
        yield made
        made.bus.close()
        await asyncio.sleep(0)


async def test_a_unit_is_there_with_its_properties_once_it_is_started(machine: Machine) -> None:
    await machine.units.start(UNIT, PROPERTIES)
    assert machine.system.units[UNIT] == {"Description": "a pod", "Wants": ["kubepods.slice"]}


async def test_a_unit_that_exists_stays_as_it_is(machine: Machine) -> None:
    # Upstream: "Unit exists: for the kubelet's slices taken as success"
    machine.system.units[UNIT] = {"Description": "older"}
    await machine.units.start(UNIT, PROPERTIES)
    assert machine.system.units[UNIT] == {"Description": "older"}


async def test_the_end_of_a_job_that_overtakes_the_reply_is_heard(machine: Machine) -> None:
    machine.system.job_first = True
    await machine.units.start(UNIT, PROPERTIES)
    assert UNIT in machine.system.units


async def test_a_job_that_fails_says_how(machine: Machine) -> None:
    machine.system.job_result = "failed"
    with pytest.raises(UnitFailed, match=r"error creating systemd unit `kubepods-pod1.slice`: got `failed`"):
        await machine.units.start(UNIT, PROPERTIES)


async def test_a_job_that_does_not_end_is_an_error_that_names_the_unit(machine: Machine) -> None:
    machine.system.jobs_end = False
    with pytest.raises(BusAway, match=f"Timeout waiting for systemd to create {UNIT}"):
        await machine.units.start(UNIT, PROPERTIES)


async def test_a_systemd_that_hangs_is_a_wait_with_a_name(machine: Machine) -> None:
    machine.system.hangs = True

    async def start() -> None:
        with pytest.raises(BusAway, match=r"StartTransientUnit kubepods-pod1.slice: no answer over D-Bus"):
            await machine.units.start(UNIT, PROPERTIES)

    async with in_background(start):
        await asyncio.sleep(0.1)
        assert machine.waits() == [f"systemd: StartTransientUnit {UNIT}"]
        await asyncio.sleep(0.5)


async def test_a_call_goes_on_when_a_bus_that_was_away_is_back(machine: Machine) -> None:
    await machine.units.version()
    machine.system.accepts = False
    machine.system.cut()

    async def back() -> None:
        await asyncio.sleep(0.1)
        machine.system.accepts = True

    async with in_background(back):
        await machine.units.start(UNIT, PROPERTIES)
    assert UNIT in machine.system.units


async def test_a_job_whose_connection_is_lost_is_asked_for_again(machine: Machine) -> None:
    machine.system.jobs_end = False
    machine.units = SystemdUnits(bus=machine.bus, recorder=machine.record, within=5)

    async def restart() -> None:
        await asyncio.sleep(0.1)
        machine.system.jobs_end = True
        machine.system.cut()

    async with in_background(restart):
        await machine.units.start(UNIT, PROPERTIES)
    assert machine.system.order == [f"+{UNIT}"]


async def test_no_bus_at_all_is_an_error_that_says_so(tmp_path: Path) -> None:
    record = Record(clock=SystemClock())
    bus = SystemBus(address=f"unix:path={tmp_path}/none", recorder=record)
    with pytest.raises(BusAway, match=r"no answer over D-Bus within 0.2 s: .*No such file"):
        await SystemdUnits(bus=bus, recorder=record, within=0.2).start(UNIT, PROPERTIES)


async def test_a_unit_that_is_not_there_is_stopped_already(machine: Machine) -> None:
    await machine.units.stop(UNIT)
    assert machine.system.units == {}


async def test_a_stopped_unit_is_gone(machine: Machine) -> None:
    await machine.units.start(UNIT, PROPERTIES)
    await machine.units.stop(UNIT)
    assert machine.system.order == [f"+{UNIT}", f"-{UNIT}"]


async def test_a_refused_property_is_an_error_with_systemds_name_for_it(machine: Machine) -> None:
    machine.system.refuses["SetUnitProperties"] = "org.freedesktop.DBus.Error.InvalidArgs"
    with pytest.raises(BusRefused, match="InvalidArgs"):
        await machine.units.change(UNIT, PROPERTIES)


@pytest.mark.parametrize(
    ("said", "version"), [("252.39-1~deb12u1", 252), ('"v245.4-1.fc32"', 245), ("249", 249), ("", TOO_OLD)]
)
async def test_the_version_is_the_first_number(machine: Machine, said: str, version: int) -> None:
    # Upstream: "first integer of the Version text after removing quotes and v"
    machine.system.version = said
    assert await machine.units.version() == version


def test_an_agent_that_needs_no_systemd_does_not_load_the_library() -> None:
    program = "import sys, glasslet.daemon; sys.exit('dbus_fast' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
