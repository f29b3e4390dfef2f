"""Keeps facts about machine and runtime at hand, so that computing a node status waits for nothing.

A name server or a runtime that hangs makes a fact old; it never delays the status that shows it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

from msgspec.structs import replace

from glasslet.concurrency.jitter import jittered
from glasslet.host.addresses import NodeAddressUnknown
from glasslet.host.cgroups.discovery import huge_page_bytes
from glasslet.host.machine import Machine, capacity_of, look_up_node_ips, resolve_name
from glasslet.host.threads import LOOK_UP, HostCallStuck, HostThreads
from glasslet.node.inputs import HostFacts, NodeEvent
from glasslet.node.notices import ImageFilesystems, image_disk_notice
from glasslet.node.settings import NodeSettings
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.model import Image, RuntimeInfo


class HostProbe:
    """Reads the machine. Every call may hang and belongs in a thread."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        root_dir: str,
        system: str = "",
        resolve: Callable[[str], tuple[str, ...]] = resolve_name,
    ) -> None:
        """`system`: a folder with another machine's /sys ("": this machine's)."""
        self._settings = settings
        self._root_dir = root_dir
        self._system = system
        self._resolve = resolve

    def addresses(self) -> tuple[str, ...]:
        """The node's IP addresses. Raises NodeAddressUnknown, OSError."""
        return look_up_node_ips(self._settings.name, self._settings.node_ips, self._resolve)

    def storage(self) -> int:
        """Bytes of the file system of the root directory. Raises OSError."""
        return capacity_of(self._root_dir)

    def hugepages(self) -> dict[int, int]:
        """Page size -> bytes in reserved pages of that size, 0 for a size without pages."""
        return huge_page_bytes(self._system)


logger = logging.getLogger(__name__)

T = TypeVar("T")

_IMAGES_SECONDS = 30.0
"""imagegc.list_cache"""
_HUGE_PAGES_SECONDS = 300.0
_HOST_SECONDS = 5.0
_RUNTIME_SECONDS = 10.0
_JITTER = 0.04


async def find_host_ips(name: str, node_ip: str, *, threads: HostThreads, recorder: Recorder) -> tuple[str, ...]:
    """The node's addresses for pods. A machine without any runs pods, too, unless `node_ip` (--node-ip) requests one.
    Raises NodeAddressUnknown, HostCallStuck."""
    requested = tuple(ip.strip() for ip in node_ip.split(",") if ip.strip())
    look_up = partial(look_up_node_ips, name, requested, resolve_name)
    try:
        return await threads.run(
            look_up, on="the node's address", kind=WaitKind.ADMISSION, within=_HOST_SECONDS, place=LOOK_UP
        )
    except (NodeAddressUnknown, HostCallStuck) as error:
        if requested:
            raise
        recorder.finding(f"no address for this node: {error}")
        return ()


class HostReader(Protocol):
    """See `HostProbe`."""

    def addresses(self) -> tuple[str, ...]: ...

    def storage(self) -> int: ...

    def hugepages(self) -> dict[int, int]: ...


class RuntimeFacts(Protocol):
    """The part of `RuntimeService` that is used here."""

    async def version(self) -> RuntimeInfo: ...


class ImageFacts(ImageFilesystems, Protocol):
    """The part of `ImageService` that is used here."""

    async def list_images(self) -> tuple[Image, ...]: ...


class FactKeeper:
    """Owner of `facts`; `run()` refreshes them until cancelled."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        machine: Machine,
        probe: HostReader,
        runtime: RuntimeFacts,
        images: ImageFacts,
        threads: HostThreads,
        recorder: Recorder,
    ) -> None:
        self._settings = settings
        self._probe = probe
        self._runtime = runtime
        self._images = images
        self._threads = threads
        self._recorder = recorder
        self._trouble: dict[str, StandingFinding] = {}
        self._on_change: list[Callable[[], None]] = []
        self.facts = HostFacts(machine=machine)
        self.gathered = asyncio.Event()
        """Set once each fact was read, or its read failed."""

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Calls `callback` when the node's addresses or storage change."""
        self._on_change.append(callback)

    async def run(self) -> None:
        """Gathers all facts, then re-reads each at its own pace."""
        await self.gather()
        async with asyncio.TaskGroup() as group:
            group.create_task(_repeat(self._read_host, self._settings.update_seconds), name="node facts: host")
            group.create_task(_repeat(self._read_runtime, _IMAGES_SECONDS), name="node facts: runtime")
            group.create_task(_repeat(self._read_huge_pages, _HUGE_PAGES_SECONDS), name="node facts: huge pages")

    async def gather(self) -> None:
        """Reads every fact once; one that does not answer in time stays unknown."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read_host(), name="node facts: host")
            group.create_task(self._read_runtime(), name="node facts: runtime")
            group.create_task(self._read_huge_pages(), name="node facts: huge pages")
        self.gathered.set()

    async def image_disk_problem(self) -> NodeEvent | None:
        """The event of an image file system without capacity."""
        return await image_disk_notice(self._images, self._threads)

    async def _read_host(self) -> None:
        addresses = await self._in_thread(self._probe.addresses, "the node's addresses")
        storage = self.facts.storage
        if storage is None and self._settings.local_storage:
            storage = await self._in_thread(self._probe.storage, "the size of the root directory's file system")
        before = self.facts
        self.facts = replace(before, addresses=addresses, storage=storage)
        if self.gathered.is_set() and self.facts != before:
            for callback in self._on_change:
                callback()

    async def _read_huge_pages(self) -> None:
        found = await self._in_thread(self._probe.hugepages, "the number of huge pages")
        if found is not None:
            self.facts = replace(self.facts, hugepages=found)

    async def _read_runtime(self) -> None:
        """Version and images; while the runtime is away, its last answer counts."""
        try:
            async with asyncio.timeout(_RUNTIME_SECONDS):
                info = await self._runtime.version()
                images = await self._images.list_images() if self._settings.max_images else ()
        except (RuntimeCallError, TimeoutError) as error:
            logger.info("runtime facts unknown", extra={"error": str(error) or "no answer in time"})
            return
        self.facts = replace(self.facts, runtime_name=info.name, runtime_version=info.version, images=images)

    async def _in_thread(self, call: Callable[[], T], on: str) -> T | None:
        try:
            found = await self._threads.run(call, on=on, kind=WaitKind.ADMISSION, within=_HOST_SECONDS)
        except (NodeAddressUnknown, OSError) as error:
            self._trouble.setdefault(on, StandingFinding(self._recorder)).is_(f"{on}: {error}")
            return None
        if on in self._trouble:
            self._trouble.pop(on).over()
        return found


async def _repeat(read: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        await asyncio.sleep(jittered(seconds, _JITTER))
        await read()
