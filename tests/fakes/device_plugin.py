"""A device plugin: serves the protocol on a socket of its own, registers, and does what a test says.

As a process: `python -m tests.fakes.device_plugin --folder F --resource R --devices a,b [--mount HOST:INSIDE]`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import grpc

from glasslet.devices._generated import deviceplugin_pb2 as messages

VERSION = "v1beta1"
Allocated = Callable[[list[str]], messages.ContainerAllocateResponse]


def device(name: str, *, healthy: bool = True, numa: Iterable[int] = ()) -> messages.Device:
    """One device as a plugin tells of it."""
    nodes = [messages.NUMANode(ID=node) for node in numa]
    topology = messages.TopologyInfo(nodes=nodes) if nodes else None
    return messages.Device(ID=name, health="Healthy" if healthy else "Unhealthy", topology=topology)


def with_variable(ids: list[str]) -> messages.ContainerAllocateResponse:
    """The usual answer: the ids in an environment variable."""
    return messages.ContainerAllocateResponse(envs={"DEVICES": ",".join(ids)})


class FakeDevicePlugin:
    """`serve()` listens, `register()` tells the agent, `tell()` changes the devices, `stop()` ends it like a crash.

    `calls` are the names of what it was asked, `failing` maps a verb to the error it gives; `held` verbs do not answer
    until `go_on` is set."""

    def __init__(self, folder: str, resource: str, devices: Iterable[messages.Device], *, name: str = "") -> None:
        self.folder = folder
        self.resource = resource
        self.endpoint = name or f"{resource.replace('/', '-')}.sock"
        self.calls: list[str] = []
        self.asked: list[Any] = []
        self.failing: dict[str, str] = {}
        self.held: set[str] = set()
        self.go_on = asyncio.Event()
        self.options = messages.DevicePluginOptions()
        self.allocated: Allocated = with_variable
        self.preferred: list[str] = []
        self._devices = list(devices)
        self._news: set[asyncio.Event] = set()
        self._ended = False
        self._server: grpc.aio.Server | None = None

    @property
    def socket(self) -> str:
        """Where it listens."""
        return os.path.join(self.folder, self.endpoint)

    async def serve(self) -> None:
        """Listens."""
        handlers = {
            "GetDevicePluginOptions": self._unary("GetDevicePluginOptions", messages.Empty, self._get_options),
            "Allocate": self._unary("Allocate", messages.AllocateRequest, self._allocate),
            "PreStartContainer": self._unary("PreStartContainer", messages.PreStartContainerRequest, self._pre_start),
            "GetPreferredAllocation": self._unary(
                "GetPreferredAllocation", messages.PreferredAllocationRequest, self._prefer
            ),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                self._watch,
                request_deserializer=messages.Empty.FromString,
                response_serializer=messages.ListAndWatchResponse.SerializeToString,
            ),
        }
        self._ended = False
        self._server = grpc.aio.server()
        generic = grpc.method_handlers_generic_handler(f"{VERSION}.DevicePlugin", handlers)
        self._server.add_generic_rpc_handlers((generic, *self.other_services()))
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()

    def other_services(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """More on the same socket."""
        return ()

    async def register(self, *, version: str = VERSION, endpoint: str | None = None) -> None:
        """Tells the agent. Raises grpc.aio.AioRpcError."""
        async with grpc.aio.insecure_channel(f"unix:{self.folder}/kubelet.sock") as channel:
            call = channel.unary_unary(
                f"/{VERSION}.Registration/Register",
                request_serializer=messages.RegisterRequest.SerializeToString,
                response_deserializer=messages.Empty.FromString,
            )
            named = self.endpoint if endpoint is None else endpoint
            await call(messages.RegisterRequest(version=version, endpoint=named, resource_name=self.resource))

    def tell(self, *devices: messages.Device) -> None:
        """From now on it has these."""
        self._devices = list(devices)
        self._wake()

    def end_stream(self) -> None:
        """Ends ListAndWatch; everything else goes on."""
        self._ended = True
        self._wake()

    async def stop(self) -> None:
        """Is gone."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    def _wake(self) -> None:
        for news in self._news:
            news.set()

    async def _watch(self, _request: messages.Empty, context: Any) -> AsyncIterator[messages.ListAndWatchResponse]:
        self.calls.append("ListAndWatch")
        news = asyncio.Event()
        self._news.add(news)
        try:
            while not self._ended:
                if "ListAndWatch" in self.failing:
                    await context.abort(grpc.StatusCode.UNKNOWN, self.failing["ListAndWatch"])
                yield messages.ListAndWatchResponse(devices=self._devices)
                await news.wait()
                news.clear()
        finally:
            self._news.discard(news)

    async def _get_options(self, _request: Any) -> messages.DevicePluginOptions:
        return self.options

    async def _allocate(self, request: messages.AllocateRequest) -> messages.AllocateResponse:
        answers = [self.allocated(list(one.devices_ids)) for one in request.container_requests]
        return messages.AllocateResponse(container_responses=answers)

    async def _pre_start(self, _request: Any) -> messages.PreStartContainerResponse:
        return messages.PreStartContainerResponse()

    async def _prefer(self, _request: Any) -> messages.PreferredAllocationResponse:
        answer = messages.ContainerPreferredAllocationResponse(deviceIDs=self.preferred)
        return messages.PreferredAllocationResponse(container_responses=[answer])

    def _unary(self, verb: str, request: Any, answer: Callable[[Any], Awaitable[Any]]) -> Any:
        async def call(asked: Any, context: Any) -> Any:
            self.calls.append(verb)
            self.asked.append(asked)
            if verb in self.held:
                await self.go_on.wait()
            if verb in self.failing:
                await context.abort(grpc.StatusCode.UNKNOWN, self.failing[verb])
            return await answer(asked)

        return grpc.unary_unary_rpc_method_handler(
            call,
            request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--resource", required=True)
    parser.add_argument("--devices", required=True, help="ids with commas between them")
    parser.add_argument("--mount", default="", help="HOST:INSIDE, a file that each container gets")
    parser.add_argument("--node", default="", help="HOST:INSIDE, a device that each container gets")
    options = parser.parse_args()
    names = options.devices.split(",")
    plugin = FakeDevicePlugin(options.folder, options.resource, [device(name) for name in names])

    def allocated(ids: list[str]) -> messages.ContainerAllocateResponse:
        answer = with_variable(ids)
        if options.mount:
            host, _, inside = options.mount.partition(":")
            answer.mounts.add(host_path=host, container_path=inside, read_only=True)
        if options.node:
            host, _, inside = options.node.partition(":")
            answer.devices.add(host_path=host, container_path=inside, permissions="rw")
        return answer

    plugin.allocated = allocated
    await plugin.serve()
    seen = None
    while True:
        # Registers again whenever the agent's socket is another one, as plugins do.
        try:
            status = os.stat(f"{options.folder}/kubelet.sock")
            # A new socket may get the number of the one that was removed.
            found = status.st_ino, status.st_ctime_ns
            if not os.path.exists(plugin.socket):
                await plugin.stop()
                await plugin.serve()
            if found != seen:
                await plugin.register()
                seen = found
        except (OSError, grpc.aio.AioRpcError):
            seen = None
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(_main())
