"""A DRA driver: its service and its registration on sockets of their own, doing what a test says.

It keeps the rules: prepared twice is as good as once, and what is not prepared is given back at once.

As a process: `python -m tests.fakes.dra_driver --root ROOT_DIR --log FILE [--cdi FOLDER]`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from glasslet.dra._generated import dra_pb2 as messages
from glasslet.plugin_registry._generated import pluginregistration_pb2 as registration
from tests.fakes.csi_driver import listening, unary

PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"


class FakeDRADriver:
    """`serve()` listens on `<folder>/<name>/dra<instance>.sock`, `register()` shows the registration socket, `stop()`
    ends both like a crash.

    `calls` are (method, claim UIDs); `prepared` the claims that it holds. `failing` maps a method to code and words of
    its error, `errors` a claim's UID to the error in the answer; a method in `held` does not answer until `go_on` is
    set, one in `held_after` neither, but does its work first; `answer` makes another answer of the right one."""

    def __init__(self, root: Path, name: str = "gpu.example", *, instance: str = "") -> None:
        self.name = name
        self.folder = root / "plugins" / name
        self.registry = root / "plugins_registry"
        self.instance = instance
        self.endpoint = ""
        """What it says when it registers, "" for its own socket."""
        self.versions = ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self.prepared: set[str] = set()
        self.failing: dict[str, tuple[grpc.StatusCode, str]] = {}
        self.errors: dict[str, str] = {}
        self.held: set[str] = set()
        self.held_after: set[str] = set()
        self.go_on = asyncio.Event()
        self.answer: Callable[[Any], Any] = lambda answer: answer
        self.devices: Callable[[Any], list[messages.Device]] = self._one_device
        self.services: set[str] = set()
        """Those that it was called by."""
        self.told: list[tuple[bool, str]] = []
        self.log: Path | None = None
        self.cdi: Path | None = None
        self._server: grpc.aio.Server | None = None
        self._registrar: grpc.aio.Server | None = None

    @property
    def socket(self) -> Path:
        return self.folder / f"dra{self.instance}.sock"

    @property
    def registration_socket(self) -> Path:
        return self.registry / f"{self.name}{self.instance}-reg.sock"

    async def serve(self) -> None:
        """Listens."""
        self.folder.mkdir(parents=True, exist_ok=True)
        services = {f"k8s.io.kubelet.pkg.apis.dra.{version}": self._methods(version) for version in self.versions}
        self._server = await listening(self.socket, services)

    async def register(self) -> None:
        """Its registration socket appears."""
        self.registry.mkdir(parents=True, exist_ok=True)
        methods = {
            "GetInfo": unary(registration.InfoRequest, self._get_info),
            "NotifyRegistrationStatus": unary(registration.RegistrationStatus, self._notify),
        }
        self._registrar = await listening(self.registration_socket, {"pluginregistration.Registration": methods})

    async def unregister(self) -> None:
        """The registration socket is gone."""
        if self._registrar is not None:
            await self._registrar.stop(None)
            self._registrar = None
            self.registration_socket.unlink(missing_ok=True)

    async def stop_serving(self) -> None:
        """Its service is gone; it stays registered."""
        self.go_on.set()
        if self._server is not None:
            await self._server.stop(None)
            self._server = None
            self.socket.unlink(missing_ok=True)

    async def stop(self) -> None:
        """Is gone; what it prepared stays prepared."""
        await self.unregister()
        await self.stop_serving()

    def times(self, method: str) -> int:
        """How often it was called."""
        return sum(called == method for called, _ in self.calls)

    # -- the services --------------------------------------------------------------------------------------------------

    def _methods(self, version: str) -> dict[str, grpc.RpcMethodHandler]:
        async def prepare(request: Any, context: Any) -> Any:
            self.services.add(version)
            return await self._called(PREPARE, request, context)

        async def unprepare(request: Any, context: Any) -> Any:
            self.services.add(version)
            return await self._called(UNPREPARE, request, context)

        return {
            PREPARE: unary(messages.NodePrepareResourcesRequest, prepare),
            UNPREPARE: unary(messages.NodeUnprepareResourcesRequest, unprepare),
        }

    async def _called(self, method: str, request: Any, context: Any) -> Any:
        uids = tuple(claim.uid for claim in request.claims)
        self.calls.append((method, uids))
        self._note(f"{method} {','.join(uids)}")
        if method in self.held:
            await self.go_on.wait()
        if method in self.failing:
            await context.abort(*self.failing[method])
        answer = self._prepare(request) if method == PREPARE else self._unprepare(request)
        if method in self.held_after:
            await self.go_on.wait()
        return self.answer(answer)

    def _prepare(self, request: Any) -> messages.NodePrepareResourcesResponse:
        answer = messages.NodePrepareResourcesResponse()
        for claim in request.claims:
            one = answer.claims[claim.uid]
            if claim.uid in self.errors:
                one.error = self.errors[claim.uid]
                continue
            self.prepared.add(claim.uid)
            one.devices.extend(self.devices(claim))
            self._write_cdi(claim.uid)
        return answer

    def _unprepare(self, request: Any) -> messages.NodeUnprepareResourcesResponse:
        answer = messages.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            answer.claims[claim.uid].error = self.errors.get(claim.uid, "")
            if claim.uid not in self.errors:
                self.prepared.discard(claim.uid)
        return answer

    def _one_device(self, claim: Any) -> list[messages.Device]:
        cdi = [f"{self.name}/gpu={claim.uid}"]
        return [messages.Device(request_names=["gpu"], pool_name="pool", device_name="gpu-0", cdi_device_ids=cdi)]

    def _write_cdi(self, uid: str) -> None:
        """What the runtime does for the claim's device: a variable."""
        if self.cdi is None:
            return
        edits = {"env": [f"CLAIM={uid}"]}
        device = {"name": uid, "containerEdits": edits}
        content = {"cdiVersion": "0.5.0", "kind": f"{self.name}/gpu", "devices": [device]}
        self.cdi.mkdir(parents=True, exist_ok=True)
        (self.cdi / f"{self.name}-{uid}.json").write_text(json.dumps(content))

    async def _get_info(self, _request: Any, _context: Any) -> Any:
        return registration.PluginInfo(
            type="DRAPlugin",
            name=self.name,
            endpoint=self.endpoint or str(self.socket),
            supported_versions=self.versions,
        )

    async def _notify(self, status: Any, _context: Any) -> Any:
        self.told.append((status.plugin_registered, status.error))
        return registration.RegistrationStatusResponse()

    def _note(self, line: str) -> None:
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(f"{line}\n")


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True, help="the agent's root directory")
    parser.add_argument("--name", default="gpu.example")
    parser.add_argument("--log", required=True, help="a file that gets a line for each call")
    parser.add_argument("--cdi", default="", help="the folder that the runtime reads CDI files from")
    options = parser.parse_args()
    driver = FakeDRADriver(Path(options.root), options.name)
    driver.log = Path(options.log)
    driver.cdi = Path(options.cdi) if options.cdi else None
    # Folders of an earlier process: its sockets are dead.
    for path in (driver.socket, driver.registration_socket):
        path.unlink(missing_ok=True)
    await driver.serve()
    await driver.register()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
