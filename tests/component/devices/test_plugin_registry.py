"""Plugins that are found by their sockets in plugins_registry, over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from glasslet.concurrency.services import running
from glasslet.devices.registration import RegistryHandler
from glasslet.plugin_registry import watcher
from glasslet.plugin_registry._generated import pluginregistration_pb2 as messages
from glasslet.plugin_registry.watcher import PluginRegistry
from glasslet.record.store import Record
from glasslet.sources.folder_watch import FolderWatch
from tests.component.device_world import GPU, device_world
from tests.fakes.device_plugin import FakeDevicePlugin, device


class Handler:
    """Takes every plugin; `events` says what it was told."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.invalid = ""
        self.failing = ""

    def validate(self, name: str, versions: Collection[str]) -> str:
        return self.invalid

    async def register(self, name: str, endpoint: str) -> str:
        self.events.append(f"registered {name} at {Path(endpoint).name}")
        return self.failing

    async def deregister(self, name: str, endpoint: str) -> None:
        self.events.append(f"gone {name}")


class RegistrationSocket:
    """A plugin's registration socket; `told` are the statuses that it was notified of."""

    def __init__(self, path: Path, info: messages.PluginInfo) -> None:
        self.path = path
        self.info = info
        self.told: list[tuple[bool, str]] = []

    def services(self) -> tuple[grpc.GenericRpcHandler, ...]:
        async def get_info(_request: Any, _context: Any) -> messages.PluginInfo:
            return self.info

        async def notify(status: messages.RegistrationStatus, _context: Any) -> messages.RegistrationStatusResponse:
            self.told.append((status.plugin_registered, status.error))
            return messages.RegistrationStatusResponse()

        handlers = {
            "GetInfo": _handler(get_info, messages.InfoRequest),
            "NotifyRegistrationStatus": _handler(notify, messages.RegistrationStatus),
        }
        return (grpc.method_handlers_generic_handler("pluginregistration.Registration", handlers),)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[RegistrationSocket]:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(self.services())
        server.add_insecure_port(f"unix:{self.path}")
        await server.start()
        try:
            yield self
        finally:
            await server.stop(None)
            self.path.unlink(missing_ok=True)


def _handler(call: Any, request: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        call,
        request_deserializer=request.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


def info(kind: str = "CSIPlugin", name: str = "csi.example.com", **fields: Any) -> messages.PluginInfo:
    return messages.PluginInfo(type=kind, name=name, **fields)


@asynccontextmanager
async def registry(folder: Path, **handlers: Any) -> AsyncIterator[Record]:
    record = Record()
    async with running({"registry": plugin_registry(folder, record, **handlers).run}):
        yield record


def plugin_registry(folder: Path, record: Record, **handlers: Any) -> PluginRegistry:
    return PluginRegistry(
        folder=str(folder),
        handlers=handlers,
        watch=lambda folders: FolderWatch(folders=folders, recorder=record, what="plugin"),
        recorder=record,
    )


async def until(what: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not what():
            await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "_FIRST_PAUSE", 0.05)


async def test_a_socket_that_appears_is_registered_and_one_that_goes_is_taken_back(tmp_path: Path) -> None:
    # behaviours.md §24: "an empty endpoint means the registration socket itself; removed sockets unregister."
    handler = Handler()
    async with registry(tmp_path, CSIPlugin=handler):
        async with RegistrationSocket(tmp_path / "csi.sock", info()).serving() as socket:
            await until(lambda: socket.told)
            assert socket.told == [(True, "")]
            assert handler.events == ["registered csi.example.com at csi.sock"]
        await until(lambda: handler.events[-1] == "gone csi.example.com")


async def test_sockets_in_folders_are_found_and_hidden_ones_are_not(tmp_path: Path) -> None:
    # behaviours.md §24: "Plugin sockets in plugins_registry are found by inotify (subdirectories too, dot names
    # ignored)"
    handler = Handler()
    root = tmp_path / "reg"
    async with registry(root, CSIPlugin=handler):
        await until(root.exists)
        (root / "sub").mkdir()
        async with (
            RegistrationSocket(root / ".hidden.sock", info(name="hidden")).serving(),
            RegistrationSocket(root / "sub" / "csi.sock", info()).serving() as socket,
        ):
            await until(lambda: socket.told)
            assert handler.events == ["registered csi.example.com at csi.sock"]


async def test_a_plugin_of_a_kind_that_nobody_takes_is_told_so(tmp_path: Path) -> None:
    async with registry(tmp_path) as record:
        path = tmp_path / "x.sock"
        async with RegistrationSocket(path, info(kind="OtherPlugin")).serving() as socket:
            await until(lambda: socket.told)
            text = f"RegisterPlugin error -- no handler registered for plugin type: OtherPlugin at socket {path}"
            assert socket.told[0] == (False, text)
            await until(record.findings)


async def test_a_failed_registration_is_tried_again(tmp_path: Path) -> None:
    handler = Handler()
    handler.failing = "not today"
    async with (
        registry(tmp_path, CSIPlugin=handler),
        RegistrationSocket(tmp_path / "csi.sock", info()).serving() as socket,
    ):
        await until(lambda: len(socket.told) >= 2)
        assert socket.told[0] == (False, "RegisterPlugin error -- plugin registration failed with err: not today")
        handler.failing = ""
        await until(lambda: (True, "") in socket.told)


async def test_sockets_are_known_with_whether_they_are_registered(tmp_path: Path) -> None:
    handler = Handler()
    handler.failing = "not today"
    service = plugin_registry(tmp_path, Record(), CSIPlugin=handler)
    path = str(tmp_path / "csi.sock")
    async with running({"registry": service.run}), RegistrationSocket(Path(path), info()).serving() as socket:
        await until(lambda: socket.told)
        await until(lambda: service.sockets() == {path: False})
        handler.failing = ""
        await until(lambda: service.sockets() == {path: True})


async def test_an_invalid_plugin_is_refused(tmp_path: Path) -> None:
    handler = Handler()
    handler.invalid = "wrong name"
    async with (
        registry(tmp_path, CSIPlugin=handler),
        RegistrationSocket(tmp_path / "csi.sock", info()).serving() as socket,
    ):
        await until(lambda: socket.told)
        assert socket.told[0] == (False, "RegisterPlugin error -- plugin validation failed with err: wrong name")
        assert handler.events == []


async def test_a_device_plugin_may_register_by_its_socket(tmp_path: Path) -> None:
    # behaviours.md §24: "(or is found in plugins_registry)"
    (tmp_path / "devices").mkdir()
    async with (
        device_world(tmp_path / "devices") as world,
        registry(tmp_path / "reg", DevicePlugin=RegistryHandler(world.offers)),
    ):
        await until((tmp_path / "reg").exists)
        plugin = FakeDevicePlugin(str(tmp_path / "reg"), GPU, [device("a")])
        about = info(kind="DevicePlugin", name=GPU, supported_versions=["v1beta1"])
        plugin.other_services = RegistrationSocket(tmp_path / "unused", about).services  # type: ignore[method-assign]
        await plugin.serve()
        await world.until(lambda: world.amounts() == (1, 1))
        Path(plugin.socket).unlink()
        await world.until(lambda: world.amounts() == (1, 0))
        await plugin.stop()


async def test_registration_that_is_no_message_is_no_answer(tmp_path: Path) -> None:
    async def garbage(_request: bytes, _context: Any) -> bytes:
        return b"\xff\xff"

    server = grpc.aio.server()
    handlers = {"GetInfo": grpc.unary_unary_rpc_method_handler(garbage)}
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("pluginregistration.Registration", handlers),)
    )
    server.add_insecure_port(f"unix:{tmp_path}/csi.sock")
    await server.start()
    try:
        async with registry(tmp_path, CSIPlugin=Handler()) as record:
            await until(lambda: any("cannot be decoded" in text for text in record.findings()))
    finally:
        await server.stop(None)
