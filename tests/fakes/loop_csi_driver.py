"""A CSI driver whose volumes are files behind loop devices: file systems, disks, inline volumes, growth, figures,
snapshots and clones, for real.

`python -m tests.fakes.loop_csi_driver --root ROOT_DIR --data DIR --node ID`. All that it knows is on disk, so it may be
killed at any time. In DIR: `calls`, a line of JSON for each call that ended; `wrongs`, a line for each thing that must
never be asked of a driver; `hold`, which a test writes: methods whose calls wait as long as they are named there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import timestamp_pb2

from glasslet.host.mounts.syscalls import Mounts
from glasslet.host.mounts.table import resolved
from glasslet.volumes.csi._generated import csi_pb2 as messages
from tests.fakes.csi_controller_messages import MESSAGES
from tests.fakes.csi_driver import Capability, FakeCSIDriver, listening, unary

SINGLE_NODE = (
    messages.VolumeCapability.AccessMode.SINGLE_NODE_WRITER,
    messages.VolumeCapability.AccessMode.SINGLE_NODE_SINGLE_WRITER,
    messages.VolumeCapability.AccessMode.SINGLE_NODE_MULTI_WRITER,
)
_CREATE_DELETE, _PUBLISH, _SNAPSHOT, _CLONE, _EXPAND, _MULTI_WRITER = 1, 2, 5, 7, 9, 13
"""ControllerServiceCapability.RPC.Type."""
_LEAST = 16 << 20
_STEP = 0.05
"""Seconds between looks at `hold`."""


class Failed(Exception):
    """What the caller is answered."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words)
        self.code = code


class Files:
    """Volumes and snapshots as files, and the nodes to which volumes are attached."""

    def __init__(self, folder: Path, *, makes_missing: bool) -> None:
        self.folder = folder
        self._makes_missing = makes_missing
        folder.mkdir(parents=True, exist_ok=True)

    def image(self, volume: str) -> Path:
        return self.folder / f"{volume}.img"

    def snapshot(self, name: str) -> Path:
        return self.folder / f"{name}.snap"

    def known(self, volume: str) -> Path:
        """The file of the volume. Raises Failed if there is none."""
        path = self.image(volume)
        if not path.exists():
            if not self._makes_missing:
                raise Failed(grpc.StatusCode.NOT_FOUND, f"there is no volume {volume}")
            self.make(volume, _LEAST, None)
        return path

    def make(self, volume: str, size: int, source: Path | None) -> None:
        """A file of that size, with the content of another."""
        half = self.folder / f"{volume}.half"
        if source is None:
            half.touch()
        else:
            shutil.copyfile(source, half)
        with half.open("ab") as file:
            file.truncate(max(size, half.stat().st_size))
        half.rename(self.image(volume))

    def grow(self, volume: str, size: int) -> int:
        path = self.known(volume)
        if path.stat().st_size < size:
            os.truncate(path, size)
        return path.stat().st_size

    def attached(self, volume: str) -> dict[str, bool]:
        """Nodes, and whether the volume is for one of them only."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            found: dict[str, bool] = json.loads((self.folder / f"{volume}.nodes").read_text())
            return found
        return {}

    def write_attached(self, volume: str, nodes: dict[str, bool]) -> None:
        half = self.folder / f"{volume}.nodes.half"
        half.write_text(json.dumps(nodes))
        half.rename(self.folder / f"{volume}.nodes")

    def remove(self, volume: str) -> None:
        for suffix in ("img", "nodes"):
            (self.folder / f"{volume}.{suffix}").unlink(missing_ok=True)


class LoopDriver:
    """Controller and node service. `nodes`: ids of all nodes, this one's first; `attaches`: volumes need to be attached
    first."""

    def __init__(self, *, name: str, nodes: Sequence[str], root: Path, files: Files, attaches: bool) -> None:
        self.name, self.nodes, self.files, self.attaches = name, nodes, files, attaches
        self.node = nodes[0]
        self._root = root
        self._mounts = Mounts()
        self._loops = asyncio.Lock()
        self._locks: dict[str, asyncio.Lock] = {}

    # -- controller ----------------------------------------------------------------------------------------------------

    async def controller_get_capabilities(self, _: Any) -> Any:
        kinds = [_CREATE_DELETE, _SNAPSHOT, _CLONE, _EXPAND, _MULTI_WRITER, *([_PUBLISH] if self.attaches else [])]
        rpc, one = MESSAGES["ControllerRpc"], MESSAGES["ControllerServiceCapability"]
        able = [one(rpc=rpc(type=kind)) for kind in kinds]
        return MESSAGES["ControllerGetCapabilitiesResponse"](capabilities=able)

    async def create_volume(self, request: Any) -> Any:
        needed(name=request.name, volume_capabilities=request.volume_capabilities)
        volume, source = f"v-{request.name}", request.volume_content_source
        wanted = request.capacity_range
        size = max(wanted.required_bytes, _LEAST)
        if self.files.image(volume).exists():
            there = self.files.image(volume).stat().st_size
            if there < size or (wanted.limit_bytes and there > wanted.limit_bytes):
                raise Failed(grpc.StatusCode.ALREADY_EXISTS, f"volume {volume} has {there} bytes")
        else:
            content = None
            if source.HasField("snapshot"):
                content = self.files.snapshot(source.snapshot.snapshot_id)
            elif source.HasField("volume"):
                content = self.files.known(source.volume.volume_id)
                await self._flush()
            if content is not None and not content.exists():
                raise Failed(grpc.StatusCode.NOT_FOUND, f"there is no {content.name}")
            await asyncio.to_thread(self.files.make, volume, size, content)
        made = MESSAGES["Volume"](capacity_bytes=self.files.image(volume).stat().st_size, volume_id=volume)
        if request.HasField("volume_content_source"):
            made.content_source.CopyFrom(source)
        return MESSAGES["CreateVolumeResponse"](volume=made)

    async def delete_volume(self, request: Any) -> Any:
        needed(volume_id=request.volume_id)
        if nodes := self.files.attached(request.volume_id):
            raise Failed(grpc.StatusCode.FAILED_PRECONDITION, f"volume is attached to {', '.join(nodes)}")
        self.files.remove(request.volume_id)
        return MESSAGES["DeleteVolumeResponse"]()

    async def validate_volume_capabilities(self, request: Any) -> Any:
        needed(volume_id=request.volume_id, volume_capabilities=request.volume_capabilities)
        self.files.known(request.volume_id)
        confirmed = MESSAGES["Confirmed"](volume_capabilities=request.volume_capabilities)
        return MESSAGES["ValidateVolumeCapabilitiesResponse"](confirmed=confirmed)

    async def controller_publish_volume(self, request: Any) -> Any:
        volume, node = request.volume_id, request.node_id
        needed(volume_id=volume, node_id=node, volume_capability=request.HasField("volume_capability"))
        self.files.known(volume)
        if node not in self.nodes:
            raise Failed(grpc.StatusCode.NOT_FOUND, f"there is no node {node}")
        alone = request.volume_capability.access_mode.mode in SINGLE_NODE
        nodes = self.files.attached(volume)
        if others := [other for other, single in nodes.items() if other != node and (alone or single)]:
            self.wrong(f"volume {volume} is attached to {others[0]} and wanted by {node}")
            raise Failed(grpc.StatusCode.FAILED_PRECONDITION, f"volume is attached to {others[0]}")
        self.files.write_attached(volume, {**nodes, node: alone})
        return MESSAGES["ControllerPublishVolumeResponse"]()

    async def controller_unpublish_volume(self, request: Any) -> Any:
        volume, node = request.volume_id, request.node_id
        needed(volume_id=volume)
        nodes = self.files.attached(volume)
        if node == self.node and node in nodes and await self._loop_of(volume):
            self.wrong(f"volume {volume} is detached from {node}, which still has it staged")
        self.files.write_attached(volume, {one: alone for one, alone in nodes.items() if one != node})
        return MESSAGES["ControllerUnpublishVolumeResponse"]()

    async def controller_expand_volume(self, request: Any) -> Any:
        needed(volume_id=request.volume_id)
        size = self.files.grow(request.volume_id, request.capacity_range.required_bytes)
        return MESSAGES["ControllerExpandVolumeResponse"](capacity_bytes=size, node_expansion_required=True)

    async def create_snapshot(self, request: Any) -> Any:
        needed(name=request.name, source_volume_id=request.source_volume_id)
        path = self.files.snapshot(f"s-{request.name}")
        source_note = path.with_suffix(".of")
        if path.exists():
            if source_note.read_text() != request.source_volume_id:
                raise Failed(grpc.StatusCode.ALREADY_EXISTS, f"snapshot {request.name} is of another volume")
        else:
            source_note.write_text(request.source_volume_id)
            source = self.files.known(request.source_volume_id)
            await self._flush()
            half = path.with_suffix(".half")
            await asyncio.to_thread(shutil.copyfile, source, half)
            half.rename(path)
        made = timestamp_pb2.Timestamp(seconds=int(path.stat().st_mtime))
        one = MESSAGES["Snapshot"](
            size_bytes=path.stat().st_size,
            snapshot_id=path.stem,
            source_volume_id=request.source_volume_id,
            creation_time=made,
            ready_to_use=True,
        )
        return MESSAGES["CreateSnapshotResponse"](snapshot=one)

    async def delete_snapshot(self, request: Any) -> Any:
        needed(snapshot_id=request.snapshot_id)
        for suffix in (".snap", ".of"):
            self.files.snapshot(request.snapshot_id).with_suffix(suffix).unlink(missing_ok=True)
        return MESSAGES["DeleteSnapshotResponse"]()

    # -- node ----------------------------------------------------------------------------------------------------------

    async def node_get_info(self, _: Any) -> Any:
        return messages.NodeGetInfoResponse(node_id=self.node, max_volumes_per_node=200)

    async def node_get_capabilities(self, _: Any) -> Any:
        kinds = ("STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME", "GET_VOLUME_STATS", "SINGLE_NODE_MULTI_WRITER")
        able = [messages.NodeServiceCapability(rpc=Capability(type=Capability.Type.Value(kind))) for kind in kinds]
        return messages.NodeGetCapabilitiesResponse(capabilities=able)

    async def node_stage_volume(self, request: Any) -> Any:
        volume, path = request.volume_id, request.staging_target_path
        needed(volume_id=volume, staging_target_path=path, volume_capability=request.HasField("volume_capability"))
        self._needs_attachment(volume)
        device = await self._loop_of(volume) or await self._attach_loop(volume)
        if request.volume_capability.HasField("mount") and not self._is_mounted(path):
            mount = request.volume_capability.mount
            kind = mount.fs_type or "ext4"
            if not await run("blkid", "-o", "value", "-s", "TYPE", device, allowed=(2,)):
                await run(f"mkfs.{kind}", "-q", device)
            options = ("-o", ",".join(mount.mount_flags)) if mount.mount_flags else ()
            await run("mount", "-t", kind, *options, device, path)
            await run("resize2fs", device, allowed=(1,))
        return messages.NodeStageVolumeResponse()

    async def node_unstage_volume(self, request: Any) -> Any:
        volume, path = request.volume_id, request.staging_target_path
        needed(volume_id=volume, staging_target_path=path)
        self._unmount(path)
        if device := await self._loop_of(volume):
            # The kernel lets it go with the last mount of it, which another mount namespace may have.
            await run("losetup", "-d", device)
        return messages.NodeUnstageVolumeResponse()

    async def node_publish_volume(self, request: Any) -> Any:
        volume, path = request.volume_id, request.target_path
        needed(volume_id=volume, target_path=path, volume_capability=request.HasField("volume_capability"))
        if request.volume_context.get("csi.storage.k8s.io/ephemeral") == "true":
            source = str(self.files.folder / "inline" / volume)
            Path(source).mkdir(parents=True, exist_ok=True)
        elif request.volume_capability.HasField("block"):
            source = await self._loop_of(volume)
        else:
            source = request.staging_target_path if self._is_mounted(request.staging_target_path) else ""
        if not source:
            self.wrong(f"volume {volume} is published and not staged")
            raise Failed(grpc.StatusCode.FAILED_PRECONDITION, "volume is not staged")
        if not self._is_mounted(path):
            if request.volume_capability.HasField("block"):
                Path(path).touch()
            else:
                Path(path).mkdir(exist_ok=True)
            self._mounts.bind(source, path)
            if request.readonly:
                self._mounts.set_options(path, ["ro"])
        return messages.NodePublishVolumeResponse()

    async def node_unpublish_volume(self, request: Any) -> Any:
        volume, path = request.volume_id, request.target_path
        needed(volume_id=volume, target_path=path)
        self._unmount(path)
        if os.path.isdir(path):
            os.rmdir(path)
        else:
            Path(path).unlink(missing_ok=True)
        shutil.rmtree(self.files.folder / "inline" / volume, ignore_errors=True)
        return messages.NodeUnpublishVolumeResponse()

    async def node_expand_volume(self, request: Any) -> Any:
        volume, path = request.volume_id, request.volume_path
        needed(volume_id=volume, volume_path=path)
        device = await self._loop_of(volume)
        if not device:
            raise Failed(grpc.StatusCode.NOT_FOUND, "volume is not staged")
        await run("losetup", "-c", device)
        if not request.volume_capability.HasField("block"):
            await run("resize2fs", device)
        return messages.NodeExpandVolumeResponse(capacity_bytes=self.files.known(volume).stat().st_size)

    async def node_get_volume_stats(self, request: Any) -> Any:
        volume, path = request.volume_id, request.volume_path
        needed(volume_id=volume, volume_path=path)
        if not self._is_mounted(path):
            raise Failed(grpc.StatusCode.NOT_FOUND, f"nothing is published at {path}")
        use = messages.VolumeUsage
        if not os.path.isdir(path):
            size = self.files.known(volume).stat().st_size
            return messages.NodeGetVolumeStatsResponse(usage=[use(total=size, unit=use.BYTES)])
        found = os.statvfs(path)
        block, inodes = found.f_frsize, found.f_files
        bytes_ = use(
            total=found.f_blocks * block,
            available=found.f_bavail * block,
            used=(found.f_blocks - found.f_bfree) * block,
            unit=use.BYTES,
        )
        files = use(total=inodes, available=found.f_ffree, used=inodes - found.f_ffree, unit=use.INODES)
        return messages.NodeGetVolumeStatsResponse(usage=[bytes_, files])

    # -- serving -------------------------------------------------------------------------------------------------------

    def services(self) -> dict[str, dict[str, grpc.RpcMethodHandler]]:
        """By service and method."""
        node = {
            kind: getattr(messages, f"{kind}Request")
            for kind in (
                *("NodeGetInfo", "NodeGetCapabilities", "NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume"),
                *("NodeUnpublishVolume", "NodeExpandVolume", "NodeGetVolumeStats"),
            )
        }
        controller = {name.removesuffix("Request"): kind for name, kind in MESSAGES.items() if name.endswith("Request")}
        return {
            "csi.v1.Node": {name: unary(kind, self._answering(name)) for name, kind in node.items()},
            "csi.v1.Controller": {name: unary(kind, self._answering(name)) for name, kind in controller.items()},
        }

    def _answering(self, method: str) -> Callable[[Any, Any], Awaitable[Any]]:
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in method).lstrip("_")
        answer: Callable[[Any], Awaitable[Any]] = getattr(self, words)

        async def call(request: Any, context: Any) -> Any:
            volume, began = getattr(request, "volume_id", ""), time.time()
            try:
                async with self._locks.setdefault(volume, asyncio.Lock()) if volume else contextlib.nullcontext():
                    while method in self._held():
                        await asyncio.sleep(_STEP)
                    done = await answer(request)
            except Failed as error:
                self._tell("calls", method=method, volume=volume, began=began, error=str(error))
                await context.abort(error.code, str(error))
            except OSError as error:
                self._tell("calls", method=method, volume=volume, began=began, error=str(error))
                await context.abort(grpc.StatusCode.INTERNAL, str(error))
            else:
                if "Capabilities" not in method and "Stats" not in method:
                    self._tell("calls", method=method, volume=volume, began=began, node=getattr(request, "node_id", ""))
                return done

        return call

    def wrong(self, words: str) -> None:
        """Something that must never be asked."""
        self._tell("wrongs", words=words)

    def _tell(self, file: str, **fields: object) -> None:
        with (self.files.folder / file).open("a") as log:
            log.write(json.dumps({"at": time.time(), **fields}) + "\n")

    def _held(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return (self.files.folder / "hold").read_text().split()
        return []

    def _needs_attachment(self, volume: str) -> None:
        self.files.known(volume)
        if self.attaches and self.node not in self.files.attached(volume):
            self.wrong(f"volume {volume} is staged and not attached")
            raise Failed(grpc.StatusCode.FAILED_PRECONDITION, "volume is not attached")

    async def _loop_of(self, volume: str) -> str:
        """Its device, "" without one."""
        said = await run("losetup", "-n", "-O", "NAME", "-j", str(self.files.image(volume)))
        return said.split()[0] if said else ""

    async def _attach_loop(self, volume: str) -> str:
        async with self._loops:
            return await run("losetup", "-f", "--show", str(self.files.image(volume)))

    async def _flush(self) -> None:
        """What pods wrote is in the files."""
        for entry in self._mounts.table().at_or_below(resolved(str(self._root))):
            if "kubernetes.io/csi" in entry.path:
                await run("sync", "-f", entry.path)

    def _is_mounted(self, path: str) -> bool:
        return bool(path) and self._mounts.table().at(resolved(path)) is not None

    def _unmount(self, path: str) -> None:
        while self._is_mounted(path):
            self._mounts.unmount(path)


def needed(**fields: object) -> None:
    """Raises Failed for a field that is empty."""
    for name, value in fields.items():
        if not value:
            raise Failed(grpc.StatusCode.INVALID_ARGUMENT, f"{name} is missing")


async def run(*words: str, allowed: tuple[int, ...] = ()) -> str:
    """What the program prints. Raises Failed with its last words."""
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    out, err = await process.communicate()
    if process.returncode and process.returncode not in allowed:
        raise Failed(grpc.StatusCode.INTERNAL, f"{' '.join(words)}: {err.decode().strip()[-200:]}")
    return out.decode().strip()


class LoopDriverProcess(FakeCSIDriver):
    """Its sockets: identity and registration are those of the tests' other driver."""

    def __init__(self, folder: Path, driver: LoopDriver) -> None:
        super().__init__(folder, driver.name)
        self._driver = driver

    async def serve(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._server = await listening(self.socket, {"csi.v1.Identity": self._identity(), **self._driver.services()})

    async def _plugin_capabilities(self, _request: Any, _context: Any) -> Any:
        one = messages.PluginCapability
        return messages.GetPluginCapabilitiesResponse(
            capabilities=[
                one(service=one.Service(type=one.Service.CONTROLLER_SERVICE)),
                one(volume_expansion=one.VolumeExpansion(type=one.VolumeExpansion.ONLINE)),
            ]
        )

    async def _probe(self, _request: Any, _context: Any) -> Any:
        answer = messages.ProbeResponse()
        answer.ready.value = True
        return answer


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True, help="the agent's root directory")
    parser.add_argument("--data", required=True, help="a folder for volumes")
    parser.add_argument("--name", default="loop.example")
    parser.add_argument("--node", required=True, action="append", help="the node's id; again for each other node")
    parser.add_argument("--attach", action="store_true", help="volumes have to be attached")
    parser.add_argument("--make-missing", action="store_true", help="a volume that nobody made is made when it is used")
    options = parser.parse_args()
    files = Files(Path(options.data), makes_missing=options.make_missing)
    root = Path(options.root)
    driver = LoopDriver(name=options.name, nodes=options.node, root=root, files=files, attaches=options.attach)
    served = LoopDriverProcess(root / "plugins", driver)
    # Sockets of an earlier process are dead.
    for path in (served.socket, served.registry / f"{options.name}-reg.sock"):
        path.unlink(missing_ok=True)
    await served.serve()
    await served.register()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
