"""A gRPC server on a Unix socket, which is opened again while it cannot be used."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Sequence

from grpc import GenericRpcHandler
from grpc.aio import server as new_server

from glasslet.host.files.small_files import make_directory
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
_FOLDER_MODE = 0o750
_LONGEST_PATH = 107
"""sun_path of Linux less the closing zero."""


class UnixServer:
    """Serves `handlers` on `path` while `run()` runs. `problem`: why it cannot, "" if it can."""

    def __init__(self, *, path: str, handlers: Sequence[GenericRpcHandler], recorder: Recorder) -> None:
        self.path = path
        self.problem = ""
        self.listening = asyncio.Event()
        self._handlers = tuple(handlers)
        self._recorder = recorder
        self._trouble = StandingFinding(recorder)

    async def run(self) -> None:
        """Listens until cancelled."""
        while True:
            try:
                await self._serve()
            except (OSError, RuntimeError) as error:
                self.problem = f"{self.path}: {error}"
                self._trouble.is_(f"cannot listen on {self.problem}")
            with self._recorder.wait(WaitKind.BACK_OFF, on=f"socket {self.path}"):
                await asyncio.sleep(RETRY_SECONDS)

    async def _serve(self) -> None:
        if len(self.path.encode()) > _LONGEST_PATH:
            raise OSError(f"the path is longer than {_LONGEST_PATH} bytes")
        make_directory(os.path.dirname(self.path), _FOLDER_MODE)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        server = new_server()
        server.add_generic_rpc_handlers(self._handlers)
        server.add_insecure_port(f"unix:{self.path}")
        try:
            await server.start()
            self.problem = ""
            self._trouble.over()
            self.listening.set()
            await server.wait_for_termination()
        finally:
            self.listening.clear()
            await asyncio.shield(server.stop(None))
