"""Device plugins over real gRPC: registration, the list of devices, loss and return."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from glasslet.devices import offers
from glasslet.devices._generated import deviceplugin_pb2 as messages
from glasslet.devices.plugin import DevicePlugin, DevicePluginFailed
from glasslet.record.store import Record
from tests.component.device_world import GPU, device_world
from tests.fakes.device_plugin import FakeDevicePlugin, device


async def test_a_plugin_that_registers_is_followed(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a", "b") as plugin:
        assert plugin.calls == ["GetDevicePluginOptions", "ListAndWatch"]
        plugin.tell(device("a"), device("b", healthy=False), device("c"))
        # behaviours.md §24: "Unhealthy devices: in capacity, not allocatable."
        await world.until(lambda: world.amounts() == (3, 2))
        assert (
            b'kubelet_device_plugin_registration_total{resource_name="example.com/gpu"} 1'
            in world.metrics.registry.expose()
        )


async def test_a_plugin_without_options_is_refused_and_not_used(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world:
        plugin = FakeDevicePlugin(world.folder, GPU, [device("a")])
        plugin.failing["GetDevicePluginOptions"] = "no options today"
        await plugin.serve()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await plugin.register()
        await plugin.stop()
        assert caught.value.details() == (
            "failed to get device plugin options: rpc error: code = Unknown desc = no options today"
        )
        assert plugin.calls == ["GetDevicePluginOptions"]
        assert world.amounts() is None


async def test_a_plugin_with_a_bad_name_is_refused(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world:
        plugin = FakeDevicePlugin(world.folder, "cpu", [device("a")])
        with pytest.raises(grpc.aio.AioRpcError, match='the ResourceName "cpu" is invalid'):
            await plugin.register()


async def test_a_list_that_fails_at_once_leaves_the_resource_at_zero(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world:
        plugin = FakeDevicePlugin(world.folder, GPU, [device("a")])
        plugin.failing["ListAndWatch"] = "no list today"
        await plugin.serve()
        await plugin.register()
        await world.until(lambda: world.amounts() == (0, 0))
        await asyncio.sleep(0.3)
        assert plugin.calls == ["GetDevicePluginOptions", "ListAndWatch"]
        await plugin.stop()


async def test_a_lost_plugin_keeps_capacity_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # behaviours.md §24: "A lost plugin keeps capacity with zero allocatable for 5 min, then the resource goes to 0."
    monkeypatch.setattr(offers, "GRACE_SECONDS", 0.2)
    async with device_world(tmp_path) as world, world.plugin("a", "b") as plugin:
        await plugin.stop()
        await world.until(lambda: world.amounts() == (2, 0))
        await world.until(lambda: world.amounts() is None)
        assert world.offers.resources().removed == (GPU,)


async def test_a_plugin_that_ends_its_list_is_not_asked_again(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a") as plugin:
        plugin.end_stream()
        await world.until(lambda: world.amounts() == (1, 0))
        await asyncio.sleep(0.3)
        assert plugin.calls.count("ListAndWatch") == 1


async def test_a_plugin_that_comes_back_has_its_devices_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "GRACE_SECONDS", 0.5)
    async with device_world(tmp_path) as world, world.plugin("a") as plugin:
        await plugin.stop()
        await world.until(lambda: world.amounts() == (1, 0))
        await plugin.serve()
        await plugin.register()
        await world.until(lambda: world.amounts() == (1, 1))
        await asyncio.sleep(0.6)
        assert world.amounts() == (1, 1)


async def test_the_old_connection_of_a_plugin_that_registers_twice_does_not_count(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a") as old:
        new = FakeDevicePlugin(world.folder, GPU, [device("x"), device("y")], name="new.sock")
        await new.serve()
        await new.register()
        await world.until(lambda: world.amounts() == (2, 2))
        await old.stop()
        await asyncio.sleep(0.2)
        assert world.amounts() == (2, 2)
        await new.stop()


async def test_devices_without_a_name_are_left_out_and_told(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a") as plugin:
        plugin.tell(device("a"), messages.Device(health="Healthy"))
        await world.until(lambda: world.record.findings())
        assert world.amounts() == (1, 1)
        plugin.tell(device("a"), device("b"))
        await world.until(lambda: world.amounts() == (2, 2))
        await world.until(lambda: not world.record.findings())


async def test_a_plugin_that_does_not_answer_holds_nobody_else(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world:
        hung = FakeDevicePlugin(world.folder, "example.com/hung", [device("a")])
        hung.held.add("GetDevicePluginOptions")
        await hung.serve()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(hung.register())
            async with world.plugin("b"):
                assert not waiting.done()
            hung.go_on.set()
        await hung.stop()


@pytest.mark.parametrize("verb", ["GetDevicePluginOptions", "Allocate", "PreStartContainer"])
async def test_answer_that_is_no_message_is_a_failure_of_the_plugin(tmp_path: Path, verb: str) -> None:
    async def garbage(_request: bytes, _context: Any) -> bytes:
        return b"\xff\xff"

    async def nothing(_request: bytes, _context: Any) -> bytes:
        return b""

    verbs = ("GetDevicePluginOptions", "Allocate", "PreStartContainer")
    handlers = {name: grpc.unary_unary_rpc_method_handler(garbage if name == verb else nothing) for name in verbs}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers),))
    server.add_insecure_port(f"unix:{tmp_path}/gpu.sock")
    await server.start()
    plugin = DevicePlugin(resource=GPU, socket=f"{tmp_path}/gpu.sock", recorder=Record())
    try:
        with pytest.raises(DevicePluginFailed, match="cannot be decoded"):
            await _all_verbs(plugin)
    finally:
        await plugin.close()
        await server.stop(None)


async def _all_verbs(plugin: DevicePlugin) -> None:
    await plugin.connect()
    await plugin.pre_start(["a"])
    await plugin.allocate(["a"])
