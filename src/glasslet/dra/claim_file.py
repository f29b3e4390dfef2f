"""The claims on disk: read once, written before and after calls of drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from glasslet.dra.checkpoint import FILE, BadClaimFile, decode, encode
from glasslet.dra.claim_book import ClaimEntry
from glasslet.exchange.claims import DeviceClaimProblem
from glasslet.host.files.small_files import MAX_STATE_BYTES, move_aside, read_regular, write_atomically
from glasslet.host.threads import Threads
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind

_ON = "file of resource claims"


class ClaimFile:
    """The file in `folder`."""

    def __init__(self, *, folder: str, threads: Threads, recorder: Recorder) -> None:
        self.path = f"{folder}/{FILE}"
        self._threads = threads
        self._recorder = recorder
        self._trouble = StandingFinding(recorder)
        self._written: bytes | None = None
        self._writing = asyncio.Lock()

    async def read(self) -> Sequence[ClaimEntry]:
        """What an earlier agent wrote, of this kind or of the Go kubelet's. A file that cannot be used is moved aside
        and a finding: the Go kubelet would not start."""
        try:
            content = await self._threads.run(
                lambda: read_regular(self.path, most=MAX_STATE_BYTES), on=_ON, key="claims", kind=WaitKind.DEVICE
            )
            return decode(content)
        except FileNotFoundError:
            return ()
        except (BadClaimFile, OSError) as error:
            became = move_aside(self.path)
            self._recorder.finding(f"{self.path}: {error}; claims that were prepared are unknown, {became}")
            return ()

    async def write(self, current: Callable[[], Sequence[ClaimEntry]], what: str) -> None:
        """Writes what `current` returns when it is this write's turn. Raises DeviceClaimProblem; `what` was to be
        written."""
        async with self._writing:
            content = encode(current())
            if content == self._written:
                return
            try:
                await self._threads.run(
                    lambda: write_atomically(self.path, content), on=_ON, key="claims", kind=WaitKind.DEVICE
                )
            except OSError as error:
                self._trouble.is_(f"{self.path}: {error}: a restarted agent would not know which claims are prepared")
                raise DeviceClaimProblem(f"checkpoint ResourceClaim {what}: {error}") from error
            self._trouble.over()
            self._written = content
