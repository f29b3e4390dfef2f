"""Lets the runtime finish the calls of a killed agent.

A gRPC server cancels a call when the connection it came over breaks. containerd that is cancelled at the wrong moment
of StartContainer keeps a task that never starts and that no call removes, and the container counts one more restart.
So a small process holds a copy of the connection's socket: it learns of the agent's death by the end of a pipe, and
lets go some seconds later. Service managers that end all processes of a unit end this one too; then, and where there
is no /bin/sh, a killed agent's calls break off as they would without it.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from grpc import ChannelConnectivity
from grpc.aio import Channel

logger = logging.getLogger(__name__)

HOLD: Final = 12.0
"""Seconds after the agent's death: less than the patience of the next one (`pods.late_calls`)."""
_WAIT_FOR_DEATH: Final = "read -r _; exec sleep "


class Linger:
    """A connection that outlives this process by a few seconds."""

    def __init__(self, *, path: str, channel: Channel, hold: float = HOLD) -> None:
        self._path = os.path.realpath(path)
        self._channel = channel
        self._hold = hold
        self._holder: subprocess.Popen[bytes] | None = None

    async def run(self) -> None:
        """Has the channel's socket held until cancelled: an orderly end leaves no holder behind."""
        try:
            while True:
                state = self._channel.get_state()
                if state is ChannelConnectivity.READY:
                    self._let_go()
                    self._take_hold()
                await self._channel.wait_for_state_change(state)
        finally:
            self._let_go()

    def _take_hold(self) -> None:
        held = tuple(self._sockets())
        if not held:
            return
        try:
            self._holder = subprocess.Popen(  # noqa: S603
                ["kubelet-linger", "-c", f"{_WAIT_FOR_DEATH}{self._hold:g}"],  # noqa: S607
                executable="/bin/sh",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/bin:/bin"},
                pass_fds=held,
                start_new_session=True,
            )
        except OSError as error:
            logger.warning("calls to the runtime will not outlive a crash", extra={"error": str(error)})

    def _let_go(self) -> None:
        holder, self._holder = self._holder, None
        if holder is not None:
            holder.kill()
            holder.communicate()

    def _sockets(self) -> Iterator[int]:
        """Our file descriptors that lead to the runtime: the gRPC library does not show which one it uses."""
        for entry in Path("/proc/self/fd").iterdir():
            number = int(entry.name)
            try:
                if stat.S_ISSOCK(os.fstat(number).st_mode) and self._leads_there(number):
                    yield number
            except OSError:  # closed meanwhile, or not connected
                continue

    def _leads_there(self, number: int) -> bool:
        with socket.socket(fileno=os.dup(number)) as copy:
            if copy.family is not socket.AF_UNIX:
                return False
            peer = copy.getpeername()
            return isinstance(peer, str) and os.path.realpath(peer) == self._path
