"""Answers queries of the node's logs: the journal by journalctl, files below /var/log.

Two at a time, each for 30 s at most, whoever asks; the others wait 10 s for their turn. Nothing is kept in memory: an
answer is read as fast as its client takes it, and a client that goes away ends the process that reads for it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from glasslet.concurrency.child_process import end, read_bounded
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.host.files.descent import open_regular_inside
from glasslet.server import responses
from glasslet.server.handlers.log_query import LIST_UNITS, LogQuery, file_names, journal_command, unit_of

QUERIES = 2
"""At the same moment. journalctl may read gigabytes."""
SECONDS = 30.0
"""Of a query that has its turn."""
TURN_SECONDS = 10.0
"""Until a query has its turn."""
MOST_UNITS = 4 << 20
"""Bytes of the list of units."""
_CHUNK = 1 << 16
_NO_JOURNAL = "\njournalctl is not installed on this node: its journal cannot be read\n"


class NodeLogs:
    """`folder`: /var/log; `program`: journalctl."""

    def __init__(self, folder: str, *, program: str = "journalctl") -> None:
        self._folder = folder
        self._program = program
        self._turns = asyncio.Semaphore(QUERIES)
        self._threads = OwnThreads("node logs", limit=QUERIES)

    async def answer(self, request: web.Request, query: LogQuery) -> web.StreamResponse:
        """The journal of the services, or their files where the journal has nothing of them."""
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            return responses.error(503, f"{QUERIES} other queries of logs are answered; try again later")
        out = _Out(packed=request.headers.get("Accept-Encoding") == "gzip")
        try:
            async with asyncio.timeout(SECONDS):
                await out.begin(request)
                await self._services(query, out)
        except TimeoutError:
            await out.write(f"\nnot all of it: a query may take {SECONDS:g} s\n".encode())
        finally:
            self._turns.release()
        await out.finish()
        return out.response

    async def file(self, request: web.Request, name: str) -> web.StreamResponse:
        """A file below the folder. No link leads out of it."""
        try:
            async with asyncio.timeout(SECONDS):
                descriptor = await self._threads.run(self._open, name.replace("\\", "/"))
        except TimeoutError:
            return responses.error(503, f"the log folder did not answer within {SECONDS:g} s")
        except OSError as error:
            return responses.error(406, f'query: Invalid value: "{name}": {os.strerror(error.errno or errno.EIO)}')
        out = _Out(packed=False)
        try:
            await out.begin(request)
            await self._copy(descriptor, out)
        finally:
            os.close(descriptor)
        await out.finish()
        return out.response

    async def _services(self, query: LogQuery, out: _Out) -> None:
        units = await self._units()
        known = {service: unit_of(service, units or frozenset()) for service in query.services}
        if asked := tuple(unit for unit in known.values() if unit):
            async with self._running(*journal_command(query, asked)) as process:
                assert process.stdout is not None
                while chunk := await process.stdout.read(_CHUNK):
                    await out.write(chunk)
                if await process.wait() and not out.written:
                    await out.write(f"\njournalctl ended with code {process.returncode} and said nothing\n".encode())
        others = [service for service, unit in known.items() if not unit]
        if others and query.options:
            names = " ".join(others)
            text = f"\noptions present and query resolved to log files for [{names}]\ntry without specifying options\n"
            await out.write(text.encode())
        else:
            for service in others:
                await self._service_file(service, out)
        if others and units is None:
            await out.write(_NO_JOURNAL.encode())

    async def _units(self) -> frozenset[str] | None:
        """Those that the journal has entries of; None without a journalctl."""
        try:
            async with self._running(*LIST_UNITS) as process:
                assert process.stdout is not None
                return frozenset(
                    (await read_bounded(process.stdout, MOST_UNITS)).decode("utf-8", "replace").split("\n")
                )
        except FileNotFoundError:
            return None

    @asynccontextmanager
    async def _running(self, _name: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """journalctl, with nothing of the agent's environment, ended with the body."""
        process = await asyncio.create_subprocess_exec(
            *(self._program, *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            await asyncio.shield(end(process, group=True))

    async def _service_file(self, service: str, out: _Out) -> None:
        for name in file_names(service):
            try:
                descriptor = await self._threads.run(self._open, name)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EINVAL):
                    continue  # a folder of that name may hold the log
                text = os.strerror(error.errno or errno.EIO)
                await out.write(f"\nerror getting log for {service}: {text}\n".encode())
                return
            try:
                await self._copy(descriptor, out)
            finally:
                os.close(descriptor)
            return
        await out.write(f"\nlog not found for {service}\n".encode())

    def _open(self, name: str) -> int:
        return open_regular_inside(self._folder, name.lstrip("/"))

    async def _copy(self, descriptor: int, out: _Out) -> None:
        """As much as was there at the beginning: a log that grows has an end, too."""
        left = os.fstat(descriptor).st_size
        while left > 0:
            async with asyncio.timeout(SECONDS):
                chunk = await self._threads.run(os.read, descriptor, min(left, _CHUNK))
            if not chunk:
                break
            left -= len(chunk)
            await out.write(chunk)


class _Out:
    """A text as it comes, packed as it goes."""

    def __init__(self, *, packed: bool) -> None:
        headers = {"Content-Type": "text/plain;charset=UTF-8", **({"Content-Encoding": "gzip"} if packed else {})}
        self.response = web.StreamResponse(headers=headers)
        self.written = False
        self._packer = zlib.compressobj(1, wbits=31) if packed else None

    async def begin(self, request: web.Request) -> None:
        await self.response.prepare(request)

    async def write(self, data: bytes) -> None:
        self.written = True
        if packed := self._packer.compress(data) if self._packer is not None else data:
            await self.response.write(packed)

    async def finish(self) -> None:
        if self._packer is not None:
            await self.response.write(self._packer.flush())
        await self.response.write_eof()
