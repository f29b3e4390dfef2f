"""A CSI driver: identity and node services on a socket of its own, with a registration socket, doing what a test says.

It keeps the rules of the specification: a volume is published only where it was staged, twice is as good as once, and
what is not there is undone at once. `mounts` None: it makes and removes directories, and mounts nothing.

As a process: `python -m tests.fakes.csi_driver --root ROOT_DIR --node ID --log FILE`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc

from glasslet.host.mounts.syscalls import Mounts
from glasslet.plugin_registry._generated import pluginregistration_pb2 as registration
from glasslet.volumes.csi._generated import csi_pb2 as messages
from tests.fakes.csi_controller import Controller

Capability = messages.NodeServiceCapability.RPC
STAGE = Capability.STAGE_UNSTAGE_VOLUME


class FakeCSIDriver:
    """`serve()` listens on `<folder>/<name>/csi.sock`, `register()` shows the registration socket, `stop()` ends it
    like a crash.

    `calls` are the methods that it was asked, without questions about capabilities; `asked` the requests. `failing`
    maps a method to the code and words of its error; a method in `held` does not answer until `go_on` is set, one in
    `held_after` neither, but does its work first; `finished` are those that did."""

    def __init__(self, folder: Path, name: str = "d.example", *, mounts: Mounts | None = None) -> None:
        self.name = name
        self.folder = folder / name
        self.registry = folder.parent / "plugins_registry"
        self.capabilities: set[int] = {STAGE}
        self.info = messages.NodeGetInfoResponse(node_id="node-id")
        self.calls: list[str] = []
        self.asked: list[Any] = []
        self.failing: dict[str, tuple[grpc.StatusCode, str]] = {}
        self.held: set[str] = set()
        self.held_after: set[str] = set()
        self.finished: list[str] = []
        self.controller: Controller | None = None
        """Also serves volumes of its own, as csi-sanity wants it."""
        self.go_on = asyncio.Event()
        self.told: list[tuple[bool, str]] = []
        self.versions = ["1.0.0"]
        self.staged: dict[str, str] = {}
        self.published: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        self.usage: list[messages.VolumeUsage] = []
        self.condition: messages.VolumeCondition | None = None
        self.log: Path | None = None
        """Gets a line for each call."""
        self._mounts = mounts
        self._server: grpc.aio.Server | None = None
        self._registrar: grpc.aio.Server | None = None

    @property
    def socket(self) -> Path:
        return self.folder / "csi.sock"

    async def serve(self) -> None:
        """Listens."""
        self.folder.mkdir(parents=True, exist_ok=True)
        services = {"csi.v1.Identity": self._identity(), "csi.v1.Node": self._node()}
        if self.controller is not None:
            services["csi.v1.Controller"] = self.controller.services(unary)
        self._server = await listening(self.socket, services)

    async def register(self, path: str = "") -> None:
        """The registrar appears, at another path if one is given."""
        self.registry.mkdir(parents=True, exist_ok=True)
        services = {
            "GetInfo": unary(registration.InfoRequest, self._get_info),
            "NotifyRegistrationStatus": unary(registration.RegistrationStatus, self._notify),
        }
        where = self.registry / (path or f"{self.name}-reg.sock")
        self._registrar = await listening(where, {"pluginregistration.Registration": services})

    async def unregister(self) -> None:
        """The registrar is gone, with its socket."""
        if self._registrar is not None:
            await self._registrar.stop(None)
            self._registrar = None
            for path in self.registry.glob("*.sock"):
                path.unlink()

    async def stop(self) -> None:
        """Is gone; what it mounted stays."""
        self.go_on.set()
        await self.unregister()
        if self._server is not None:
            await self._server.stop(None)
            self._server = None
            self.socket.unlink(missing_ok=True)

    def last(self, method: str) -> Any:
        """The last request of that method."""
        return next(one for one in reversed(self.asked) if type(one).__name__ == f"{method}Request")

    # -- the services --------------------------------------------------------------------------------------------------

    def _identity(self) -> dict[str, grpc.RpcMethodHandler]:
        return {
            "GetPluginInfo": unary(messages.GetPluginInfoRequest, self._plugin_info),
            "GetPluginCapabilities": unary(messages.GetPluginCapabilitiesRequest, self._plugin_capabilities),
            "Probe": unary(messages.ProbeRequest, self._probe),
        }

    def _node(self) -> dict[str, grpc.RpcMethodHandler]:
        served = {
            messages.NodeGetCapabilitiesRequest: self._node_capabilities,
            messages.NodeGetInfoRequest: self._node_info,
            messages.NodeStageVolumeRequest: self._stage,
            messages.NodeUnstageVolumeRequest: self._unstage,
            messages.NodePublishVolumeRequest: self._publish,
            messages.NodeUnpublishVolumeRequest: self._unpublish,
            messages.NodeExpandVolumeRequest: self._expand,
            messages.NodeGetVolumeStatsRequest: self._stats,
        }
        return {
            kind.__name__.removesuffix("Request"): unary(kind, self._scripted(kind.__name__, answer))
            for kind, answer in served.items()
        }

    def _scripted(
        self, kind: str, answer: Callable[[Any, Any], Awaitable[Any]]
    ) -> Callable[[Any, Any], Awaitable[Any]]:
        method = kind.removesuffix("Request")

        async def call(request: Any, context: Any) -> Any:
            if method != "NodeGetCapabilities":
                self.calls.append(method)
                self.asked.append(request)
                if self.log is not None:
                    with self.log.open("a") as file:
                        file.write(f"{method}\n")
            if method in self.held:
                await self.go_on.wait()
            if method in self.failing:
                await context.abort(*self.failing[method])
            done = await answer(request, context)
            self.finished.append(method)
            if method in self.held_after:
                await self.go_on.wait()
            return done

        return call

    async def _get_info(self, _request: Any, _context: Any) -> Any:
        return registration.PluginInfo(
            type="CSIPlugin", name=self.name, endpoint=str(self.socket), supported_versions=self.versions
        )

    async def _notify(self, status: Any, _context: Any) -> Any:
        self.told.append((status.plugin_registered, status.error))
        return registration.RegistrationStatusResponse()

    async def _plugin_info(self, _request: Any, _context: Any) -> Any:
        return messages.GetPluginInfoResponse(name=self.name, vendor_version="1")

    async def _plugin_capabilities(self, _request: Any, _context: Any) -> Any:
        service = messages.PluginCapability.Service(type=messages.PluginCapability.Service.CONTROLLER_SERVICE)
        found = [messages.PluginCapability(service=service)] if self.controller is not None else []
        return messages.GetPluginCapabilitiesResponse(capabilities=found)

    async def _probe(self, _request: Any, _context: Any) -> Any:
        return messages.ProbeResponse()

    async def _node_capabilities(self, _request: Any, _context: Any) -> Any:
        found = [messages.NodeServiceCapability(rpc=Capability(type=one)) for one in sorted(self.capabilities)]  # type: ignore[arg-type]
        return messages.NodeGetCapabilitiesResponse(capabilities=found)

    async def _node_info(self, _request: Any, _context: Any) -> Any:
        return self.info

    async def _stage(self, request: Any, context: Any) -> Any:
        path = request.staging_target_path
        await _require(context, volume_id=request.volume_id, staging_target_path=path)
        if not request.HasField("volume_capability"):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "volume_capability is missing")
        if not request.volume_capability.HasField("block"):
            self._mount(path, request.volume_id)
        self.staged[path] = request.volume_id
        return messages.NodeStageVolumeResponse()

    async def _unstage(self, request: Any, context: Any) -> Any:
        path = request.staging_target_path
        await _require(context, volume_id=request.volume_id, staging_target_path=path)
        self._unmount(path)
        self.staged.pop(path, None)
        return messages.NodeUnstageVolumeResponse()

    async def _publish(self, request: Any, context: Any) -> Any:
        target, staging = request.target_path, request.staging_target_path
        await _require(context, volume_id=request.volume_id, target_path=target)
        if not request.HasField("volume_capability"):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "volume_capability is missing")
        inline = request.volume_context.get("csi.storage.k8s.io/ephemeral") == "true"
        if STAGE in self.capabilities and not inline and self.staged.get(staging) != request.volume_id:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"volume is not staged at {staging!r}")
        if request.volume_capability.HasField("block"):
            Path(target).touch()
        else:
            Path(target).mkdir(exist_ok=True)
            self._mount(target, request.volume_id)
        self.published[target] = request.volume_id
        return messages.NodePublishVolumeResponse()

    async def _unpublish(self, request: Any, context: Any) -> Any:
        target = request.target_path
        await _require(context, volume_id=request.volume_id, target_path=target)
        self._unmount(target)
        if os.path.isdir(target):
            os.rmdir(target)
        else:
            Path(target).unlink(missing_ok=True)
        self.published.pop(target, None)
        return messages.NodeUnpublishVolumeResponse()

    async def _expand(self, request: Any, context: Any) -> Any:
        await _require(context, volume_id=request.volume_id, volume_path=request.volume_path)
        if request.volume_path not in {**self.published, **self.staged}:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"nothing is at {request.volume_path}")
        size = request.capacity_range.required_bytes
        self.sizes[request.volume_id] = max(size, self.sizes.get(request.volume_id, 0))
        return messages.NodeExpandVolumeResponse(capacity_bytes=size)

    async def _stats(self, request: Any, context: Any) -> Any:
        await _require(context, volume_id=request.volume_id, volume_path=request.volume_path)
        if request.volume_path not in self.published:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"nothing is published at {request.volume_path}")
        return messages.NodeGetVolumeStatsResponse(usage=self.usage, volume_condition=self.condition)

    def _mount(self, path: str, volume: str) -> None:
        if self._mounts is None or self._mounts.table().at(os.path.realpath(path)) is not None:
            return
        data = self.folder / "data" / volume
        data.mkdir(parents=True, exist_ok=True)
        self._mounts.bind(str(data), path)

    def _unmount(self, path: str) -> None:
        if self._mounts is not None and self._mounts.table().at(os.path.realpath(path)) is not None:
            self._mounts.unmount(path)


def unary(request: Any, answer: Callable[[Any, Any], Awaitable[Any]]) -> Any:
    """The handler of a method."""
    return grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=request.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


async def listening(path: Path, services: dict[str, dict[str, grpc.RpcMethodHandler]]) -> grpc.aio.Server:
    """A server of these services, by name and method, at a socket."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        tuple(grpc.method_handlers_generic_handler(name, handlers) for name, handlers in services.items())
    )
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    return server


async def _require(context: Any, **fields: str) -> None:
    for name, value in fields.items():
        if not value:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{name} is missing")


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True, help="the agent's root directory")
    parser.add_argument("--name", default="d.example")
    parser.add_argument("--node", required=True, help="the node's id")
    parser.add_argument("--log", required=True, help="a file that gets a line for each call")
    parser.add_argument("--controller", action="store_true", help="the driver makes volumes")
    parser.add_argument("--expand", action="store_true", help="the driver grows volumes on nodes")
    parser.add_argument("--stats", action="store_true", help="the driver says how full volumes are")
    parser.add_argument("--hangs", default="", metavar="METHOD", help="this call gets no answer")
    parser.add_argument("--fails", default="", metavar="METHOD=CODE=WORDS", help="this call gets an error")
    options = parser.parse_args()
    driver = FakeCSIDriver(Path(options.root) / "plugins", options.name, mounts=Mounts())
    driver.info = messages.NodeGetInfoResponse(
        node_id=options.node,
        max_volumes_per_node=5,
        accessible_topology=messages.Topology(segments={f"topology.{options.name}/node": options.node}),
    )
    driver.log = Path(options.log)
    driver.controller = Controller() if options.controller else None
    driver.usage = [messages.VolumeUsage(total=100, used=60, available=40, unit=messages.VolumeUsage.BYTES)]
    driver.capabilities |= {Capability.EXPAND_VOLUME} if options.expand else set()
    driver.capabilities |= {Capability.GET_VOLUME_STATS} if options.stats else set()
    driver.held |= {options.hangs}
    if options.fails:
        method, code, words = options.fails.split("=", 2)
        driver.failing[method] = (grpc.StatusCode[code], words)
    # Folders of an earlier process: its sockets are dead.
    for path in (driver.socket, *driver.registry.glob("*.sock")):
        path.unlink(missing_ok=True)
    await driver.serve()
    await driver.register()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
