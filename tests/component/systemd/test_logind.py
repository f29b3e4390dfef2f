"""logind over a real bus: its delay, its lock, its signal."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from glasslet.concurrency.clock import SystemClock
from glasslet.host.systemd.bus import SystemBus
from glasslet.host.systemd.logind import Logind
from glasslet.host.systemd.units import SystemdUnits
from glasslet.record.store import Record
from tests.fakes.system_bus import FakeSystem, system_bus


class Machine:
    """logind and an agent's end."""

    def __init__(self, address: str, system: FakeSystem, folder: Path) -> None:
        record = Record(clock=SystemClock())
        self.system = system
        self.drop_in = folder / "logind.conf.d" / "99-kubelet.conf"
        self.heard: list[bool] = []
        self.bus = SystemBus(address=address, recorder=record)
        units = SystemdUnits(bus=self.bus, recorder=record)
        self.logind = Logind(bus=self.bus, units=units, heard=self.heard.append, drop_ins=str(self.drop_in.parent))


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    system = FakeSystem()
    async with system_bus(tmp_path, system) as address:
        made = Machine(address, system, tmp_path)
        yield made
        made.bus.close()
        await asyncio.sleep(0)


async def test_the_delay_is_in_seconds(machine: Machine) -> None:
    assert await machine.logind.delay() == 5


async def test_a_longer_delay_is_a_file_that_logind_reads(machine: Machine) -> None:
    machine.system.delay_after_reload = 45_000_000
    await machine.logind.raise_delay(45)
    assert machine.drop_in.read_text() == "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=45\n"
    assert (machine.drop_in.stat().st_mode & 0o777, machine.drop_in.parent.stat().st_mode & 0o777) == (0o644, 0o755)
    assert await machine.logind.delay() == 45


async def test_the_lock_is_open_until_its_descriptor_is_closed(machine: Machine) -> None:
    lock = await machine.logind.lock()
    words = ["shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay"]
    assert machine.system.locks() == [words]
    os.close(lock)
    assert machine.system.locks() == []


async def test_the_beginning_and_the_end_of_a_shutdown_are_heard(machine: Machine) -> None:
    assert not await machine.logind.preparing()
    machine.system.shuts_down(True)
    machine.system.shuts_down(False)
    async with asyncio.timeout(5):
        while machine.heard != [True, False]:
            await asyncio.sleep(0.01)


async def test_a_shutdown_is_heard_on_the_next_connection_as_well(machine: Machine) -> None:
    await machine.logind.delay()
    machine.system.cut()
    async with asyncio.timeout(5):
        while machine.logind.connected:
            await asyncio.sleep(0.01)
    await machine.logind.delay()
    machine.system.shuts_down(True)
    assert await machine.logind.preparing()
    assert machine.heard == [True]
