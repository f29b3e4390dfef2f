"""DRA drivers register, are upgraded, lose their connection and go, over real gRPC."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.dra.plugins import DriverNotRegistered
from glasslet.plugin_registry import watcher
from tests.component.dra_world import GPU, dra_world, driver_in
from tests.fakes.dra_driver import FakeDRADriver


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "_FIRST_PAUSE", 0.02)


async def test_a_driver_registers_by_its_socket_and_is_told(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        assert driver.told == [(True, "")]
        assert world.plugins.drivers() == (GPU,)
        assert world.plugins.choose(GPU).endpoint == str(driver.socket)


async def test_a_driver_whose_registration_socket_goes_is_not_called_any_more(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        await driver.unregister()
        await world.until(lambda: not world.plugins.drivers())
        with pytest.raises(DriverNotRegistered, match=r"^DRA driver gpu.example is not registered$"):
            world.plugins.choose(GPU)


async def test_a_driver_without_a_known_service_is_refused_and_told_why(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world:
        driver = FakeDRADriver(tmp_path)
        driver.versions = ["v7.DRAPlugin"]
        await driver.serve()
        await driver.register()
        await world.until(lambda: driver.told)
        done, text = driver.told[0]
        assert not done
        assert "invalid supported gRPC versions of DRA driver plugin gpu.example: none of services" in text
        assert not world.plugins.drivers()
        await driver.stop()


async def test_a_registration_socket_that_is_made_again_is_another_plugin(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        await driver.stop()
        await driver.serve()
        await driver.register()
        await world.until(lambda: len(driver.told) == 2 and world.plugins.connected(GPU))
        assert driver.told[-1] == (True, "")


# -- several plugins of one driver -------------------------------------------------------------------------------------


async def test_during_an_upgrade_the_newest_plugin_is_called(tmp_path: Path) -> None:
    # behaviours.md §24: "Several instances of a driver may be registered; the newest connected is used."
    old_one = {"instance": "-old"}
    async with (
        dra_world(tmp_path) as world,
        driver_in(world, **old_one) as old,
        driver_in(world, instance="-new") as new,
    ):
        await world.until(lambda: world.plugins.choose(GPU).endpoint == str(new.socket))
        await old.stop()
        await world.until(lambda: world.plugins.connected(GPU))
        assert world.plugins.choose(GPU).endpoint == str(new.socket)


async def test_an_upgrade_that_fails_leaves_the_old_plugin(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, instance="-old") as old:
        async with driver_in(world, instance="-new") as new:
            await world.until(lambda: world.plugins.choose(GPU).endpoint == str(new.socket))
        await world.until(lambda: world.plugins.choose(GPU).endpoint == str(old.socket))
        assert world.plugins.connected(GPU)


async def test_a_newer_plugin_that_does_not_listen_is_not_called(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, instance="-old") as old:
        new = FakeDRADriver(tmp_path, instance="-new")
        await new.register()
        await world.until(lambda: new.told)
        assert world.plugins.choose(GPU).endpoint == str(old.socket)
        await new.serve()
        await world.until(lambda: world.plugins.choose(GPU).endpoint == str(new.socket))
        await new.stop()


async def test_two_registrations_of_one_service_socket_are_one_too_many(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world, instance="-old") as old:
        twin = FakeDRADriver(tmp_path, instance="-twin")
        twin.endpoint = str(old.socket)
        await twin.register()
        await world.until(lambda: twin.told)
        done, text = twin.told[0]
        assert not done
        assert f"endpoint {old.socket} already registered for DRA driver plugin {GPU}" in text
        await twin.unregister()


# -- the connection ----------------------------------------------------------------------------------------------------


async def test_a_driver_that_ends_and_comes_back_is_connected_again(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        await driver.stop_serving()
        await world.until(lambda: not world.plugins.connected(GPU))
        await driver.serve()
        await world.until(lambda: world.plugins.connected(GPU))


async def test_a_driver_may_register_before_it_listens(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world:
        driver = FakeDRADriver(tmp_path)
        await driver.register()
        await world.until(lambda: driver.told)
        assert not world.plugins.connected(GPU)
        await driver.serve()
        await world.until(lambda: world.plugins.connected(GPU))
        await driver.stop()
