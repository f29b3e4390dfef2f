"""Devices for pods over real gRPC: claims, plugins that fail or hang, starts, restarts of the agent."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from glasslet.devices import plugin as plugin_module
from glasslet.devices._generated import deviceplugin_pb2 as messages
from glasslet.devices.checkpoint import FILE
from glasslet.exchange.devices import DeviceProblem
from glasslet.host.files.go_checksum import fnv_1a
from tests.component.device_world import GPU, DeviceWorld, device_world, gpu_pod
from tests.fakes.device_plugin import FakeDevicePlugin, device


async def test_a_pod_gets_what_the_plugin_gives(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a", "b") as plugin:
        it = gpu_pod(count=2)
        assert await world.admit(it) is None
        assert plugin.asked[-1].container_requests[0].devices_ids == ["a", "b"]
        given = await world.manager.prepare(it, it.spec.containers[0])
        assert given.envs == (("DEVICES", "a,b"),)
        assert plugin.calls.count("Allocate") == 1
        assert b"kubelet_device_plugin_alloc_duration_seconds_count" in world.metrics.registry.expose()


async def listed_again(world: DeviceWorld, plugin: FakeDevicePlugin, devices: int) -> None:
    """Until a plugin that registers for the second time was asked for its list, and that is known."""
    await world.until(lambda: plugin.calls.count("ListAndWatch") == 2 and world.amounts() == (devices, devices))


async def test_a_pod_that_asks_for_nothing_is_not_touched(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a") as plugin:
        it = gpu_pod(count=0, resource="cpu")
        assert await world.admit(it) is None
        assert await world.manager.prepare(it, it.spec.containers[0]) == await world.manager.prepare(
            it, it.spec.containers[0]
        )
        assert "Allocate" not in plugin.calls


async def test_a_pod_is_refused_when_there_are_no_more(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a"):
        first, second = gpu_pod("one"), gpu_pod("two")
        assert await world.admit(first) is None
        refused = world.manager.claim(second, [first])
        # behaviours.md §14: "Allocation failures: UnexpectedAdmissionError (`Allocate failed due to <error>, which is
        # unexpected`)"
        assert refused is not None
        assert refused.reason == "UnexpectedAdmissionError"
        assert refused.message == (
            "Allocate failed due to requested number of devices unavailable for example.com/gpu. "
            "Requested: 1, Available: 0, which is unexpected"
        )


async def test_two_pods_admitted_in_one_moment_do_not_get_the_same(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a", "b"):
        one, two, three = gpu_pod("one"), gpu_pod("two"), gpu_pod("three")
        assert world.manager.claim(one, []) is None
        assert world.manager.claim(two, [one]) is None
        assert world.manager.claim(three, [one, two]) is not None
        await asyncio.gather(world.manager.allocate(one), world.manager.allocate(two))
        taken = [allocation.ids for _, allocation in world.manager.allocations]
        assert sorted("".join(ids) for ids in taken) == ["a", "b"]


async def test_devices_of_a_pod_that_is_gone_are_given_again(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a"):
        assert await world.admit(gpu_pod("one")) is None
        world.standing.add("one")
        assert await world.admit(gpu_pod("two")) is not None, "its container still runs"
        world.standing.clear()
        world.pods_known = False
        assert await world.admit(gpu_pod("two")) is not None, "some source may still tell of it"
        world.pods_known = True
        assert await world.admit(gpu_pod("two")) is None


async def test_a_plugin_that_refuses_fails_the_pod_and_keeps_nothing(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a") as plugin:
        plugin.failing["Allocate"] = "broken"
        refused = await world.admit(gpu_pod("one"))
        assert refused is not None
        assert refused.message == (
            "Allocate failed due to rpc error: code = Unknown desc = broken, which is unexpected"
        )
        del plugin.failing["Allocate"]
        assert await world.admit(gpu_pod("two")) is None


async def test_an_empty_answer_fails_the_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with device_world(tmp_path) as world, world.plugin("a") as plugin:

        async def nothing(_request: object) -> messages.AllocateResponse:
            return messages.AllocateResponse()

        await plugin.stop()
        monkeypatch.setattr(plugin, "_allocate", nothing)
        await plugin.serve()
        await plugin.register()
        await listed_again(world, plugin, 1)
        refused = await world.admit(gpu_pod())
        assert refused is not None
        assert "no containers return in allocation response" in refused.message


async def test_a_plugin_that_hangs_holds_only_its_own_pods(tmp_path: Path) -> None:
    async with (
        device_world(tmp_path) as world,
        world.plugin("a") as hung,
        world.plugin("n", resource="example.com/nic"),
    ):
        hung.held.add("Allocate")
        one, two = gpu_pod("one"), gpu_pod("two", resource="example.com/nic")
        assert world.manager.claim(one, []) is None
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(world.manager.allocate(one))
            await world.until(lambda: "Allocate" in hung.calls)
            assert await world.admit(two, one) is None
            assert "device plugin example.com/gpu: Allocate" in [wait.on for wait in world.record.live_waits()]
            assert not waiting.done()
            hung.go_on.set()


async def test_a_pod_that_is_ended_while_its_plugin_hangs_gives_back(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a") as plugin:
        plugin.held.add("Allocate")
        one = gpu_pod("one")
        assert world.manager.claim(one, []) is None
        waiting = asyncio.ensure_future(world.manager.allocate(one))
        await world.until(lambda: "Allocate" in plugin.calls)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        plugin.held.clear()
        assert await world.admit(gpu_pod("two")) is None


async def test_a_plugins_preference_is_asked_for_where_it_has_one(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a", "b", "c") as plugin:
        plugin.options.get_preferred_allocation_available = True
        plugin.preferred = ["c"]
        await plugin.register()
        await listed_again(world, plugin, 3)
        assert await world.admit(gpu_pod(count=2)) is None
        asked = next(one for one in plugin.asked if isinstance(one, messages.PreferredAllocationRequest))
        assert asked.container_requests[0].allocation_size == 2
        assert list(asked.container_requests[0].available_deviceIDs) == ["a", "b", "c"]
        assert plugin.asked[-1].container_requests[0].devices_ids == ["a", "c"]


async def test_a_container_is_prepared_before_each_start(tmp_path: Path) -> None:
    # behaviours.md §24: "PreStartContainer before each start, 30 s."
    async with device_world(tmp_path) as world, world.plugin("a") as plugin:
        plugin.options.pre_start_required = True
        await plugin.register()
        await listed_again(world, plugin, 1)
        it = gpu_pod()
        assert await world.admit(it) is None
        for _ in range(2):
            await world.manager.prepare(it, it.spec.containers[0])
        assert [
            list(one.devices_ids) for one in plugin.asked if isinstance(one, messages.PreStartContainerRequest)
        ] == [
            ["a"],
            ["a"],
        ]


async def test_a_container_whose_devices_are_not_prepared_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_module, "PRE_START_SECONDS", 0.2)
    async with device_world(tmp_path) as world, world.plugin("a") as plugin:
        plugin.options.pre_start_required = True
        plugin.held.add("PreStartContainer")
        await plugin.register()
        await listed_again(world, plugin, 1)
        it = gpu_pod()
        assert await world.admit(it) is None
        with pytest.raises(DeviceProblem, match="PreStartContainer rpc failed with err: rpc error: code = DeadlineExc"):
            await world.manager.prepare(it, it.spec.containers[0])


async def test_a_container_restarts_with_its_devices_while_the_plugin_is_away(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a") as plugin:
        it = gpu_pod()
        assert await world.admit(it) is None
        await plugin.stop()
        await world.until(lambda: world.amounts() == (1, 0))
        given = await world.manager.prepare(it, it.spec.containers[0])
        assert given.envs == (("DEVICES", "a"),)


async def test_a_restarted_agent_knows_who_has_what(tmp_path: Path) -> None:
    # behaviours.md §24: "After a kubelet restart checkpointed resources count with 0 allocatable until the plugin is
    # back; containers already running are not allocated anew."
    it = gpu_pod()
    async with device_world(tmp_path) as world, world.plugin("a", "b"):
        assert await world.admit(it) is None
    async with device_world(tmp_path) as world:
        assert world.amounts() == (0, 0)
        world.standing.add("u")
        assert await world.admit(it) is None
        assert dict(world.manager.at_least(it)) == {GPU: 1}
        async with world.plugin("a", "b") as plugin:
            assert await world.admit(gpu_pod("other"), it) is None
            assert plugin.asked[-1].container_requests[0].devices_ids == ["b"]


async def test_after_a_reboot_a_pod_is_refused_until_its_plugin_is_back(tmp_path: Path) -> None:
    it = gpu_pod()
    async with device_world(tmp_path) as world, world.plugin("a"):
        assert await world.admit(it) is None
    async with device_world(tmp_path) as world:
        refused = world.manager.claim(it, [])
        assert refused is not None
        assert "no healthy devices present; cannot allocate unhealthy devices example.com/gpu" in refused.message


async def test_a_pod_whose_init_container_is_through_survives_a_restart_of_the_agent(tmp_path: Path) -> None:
    it = gpu_pod()
    it = replace(it, spec=replace(it.spec, init_containers=(replace(it.spec.containers[0], name="init"),)))
    async with device_world(tmp_path) as world, world.plugin("a"):
        assert await world.admit(it) is None
    async with device_world(tmp_path) as world:
        world.standing.add("u")
        assert await world.admit(it) is None
        assert (await world.manager.prepare(it, it.spec.containers[0])).envs == (("DEVICES", "a"),)


async def test_a_standing_pod_of_which_nothing_is_known_gets_devices_at_its_next_start(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a"):
        it = gpu_pod()
        world.standing.add("u")
        assert await world.admit(it) is None
        assert len(world.manager.allocations) == 0
        assert (await world.manager.prepare(it, it.spec.containers[0])).envs == (("DEVICES", "a"),)


async def test_a_damaged_checkpoint_is_moved_aside_and_told(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"Data":{},"Checksum":7}')
    async with device_world(tmp_path) as world, world.plugin("a"):
        assert (tmp_path / f"{FILE}.damaged").exists()
        assert any("checksum is 7" in text for text in world.record.findings())
        assert await world.admit(gpu_pod()) is None


async def test_a_full_disk_refuses_the_pod_instead_of_forgetting_it(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a"):
        world.file.path = "/proc/none/checkpoint"
        refused = await world.admit(gpu_pod())
        assert refused is not None
        assert "failed to write checkpoint file" in refused.message


async def test_an_unhealthy_device_is_not_given_to_the_next_pod(tmp_path: Path) -> None:
    async with device_world(tmp_path) as world, world.plugin("a", "b") as plugin:
        plugin.tell(device("a", healthy=False), device("b"))
        await world.until(lambda: world.amounts() == (2, 1))
        assert await world.admit(gpu_pod()) is None
        assert plugin.asked[-1].container_requests[0].devices_ids == ["b"]


async def test_the_checkpoint_is_made_and_read_off_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its checksum takes 0.4 s for 100,000 devices.
    summed_in: list[int] = []
    checksum = fnv_1a

    def noted(text: str) -> int:
        summed_in.append(threading.get_ident())
        return checksum(text)

    monkeypatch.setattr("glasslet.devices.checkpoint.fnv_1a", noted)
    async with device_world(tmp_path) as world, world.plugin("a"):
        assert await world.admit(gpu_pod()) is None
    async with device_world(tmp_path) as world:
        assert len(world.manager.allocations) == 1
    assert len(summed_in) >= 2
    assert threading.get_ident() not in summed_in
