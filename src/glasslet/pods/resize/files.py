"""Resized pods on the disk: `allocated_pods_state` and `actuated_pods_state` below the root directory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from glasslet.host.files.small_files import MAX_STATE_BYTES, move_aside, read_regular, write_atomically
from glasslet.host.threads import Threads
from glasslet.pods.resize.checkpoint import ByPod, DamagedCheckpoint, dump, load

T = TypeVar("T")

_PAUSE = 10.0
"""Seconds between tries to write while the disk refuses."""


class ResizeFiles:
    """`finding` takes files that cannot be read, trusted or written."""

    def __init__(self, *, folder: str, threads: Threads, finding: Callable[[str], None]) -> None:
        self._allocated = f"{folder}/allocated_pods_state"
        self._actuated = f"{folder}/actuated_pods_state"
        self._threads = threads
        self._finding = finding
        self._next: tuple[ByPod, ByPod] | None = None
        self._requested = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    def read(self) -> tuple[ByPod, ByPod]:
        """(allocated, actuated) as the last run left them. One that is damaged is moved aside and counts as empty: the
        pods then have what their specs say."""
        return self._read(self._allocated), self._read(self._actuated)

    def save(self, allocated: ByPod, actuated: ByPod) -> None:
        """Soon; the newest counts."""
        self._next = allocated, {uid: dict(resources) for uid, resources in actuated.items()}
        self._settled.clear()
        self._requested.set()

    async def saved(self) -> None:
        """When everything is on the disk, or cannot be."""
        await self._settled.wait()

    async def run(self) -> None:
        """Writes what is to be saved, until cancelled."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            if not await self._write():
                await asyncio.sleep(_PAUSE)
                self._requested.set()

    async def _write(self) -> bool:
        if self._next is None:
            return True
        (allocated, actuated), self._next = self._next, None

        def write() -> None:
            write_atomically(self._allocated, dump(allocated))
            write_atomically(self._actuated, dump(actuated))

        try:
            await self._threads.run(write, on="what pods are allocated, on the disk")
        except OSError as error:
            self._finding(f"{self._allocated} cannot be written: {error.strerror}")
            self._next = self._next or (allocated, actuated)
            self._settled.set()
            return False
        if self._next is None:
            self._settled.set()
        return True

    def _read(self, path: str) -> ByPod:
        try:
            return load(read_regular(path, most=MAX_STATE_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, DamagedCheckpoint) as error:
            became = move_aside(path)
            self._finding(f"{path} cannot be trusted, pods have what their specs say: {error}; {became}")
        return {}
