"""A person at a terminal: a program on a pseudo-terminal whose window changes its size."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import termios
import time


class Terminal:
    """Runs a program whose controlling terminal this is. What it printed is in `screen`."""

    def __init__(self, *command: str, rows: int, columns: int) -> None:
        self._near, far = os.openpty()
        self.resize(rows, columns)
        self.screen = ""
        self._process = subprocess.Popen(
            command, stdin=far, stdout=far, stderr=far, start_new_session=True, preexec_fn=lambda: _own(far)
        )
        os.close(far)

    def resize(self, rows: int, columns: int) -> None:
        """The window has another size now; the kernel tells the program."""
        fcntl.ioctl(self._near, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Keys are pressed."""
        os.write(self._near, text.encode())

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        """Until the text was printed."""
        deadline = time.monotonic() + seconds
        while text not in self.screen:
            assert time.monotonic() < deadline, f"no {text!r} in {self.screen!r}"
            self._read(0.1)

    def exit_code(self, seconds: float = 60.0) -> int:
        """Waits for the program's end."""
        deadline = time.monotonic() + seconds
        while (code := self._process.poll()) is None:
            assert time.monotonic() < deadline, f"goes on: {self.screen!r}"
            self._read(0.1)
        return code

    def close(self) -> None:
        """Takes the terminal away."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._near)

    def _read(self, seconds: float) -> None:
        if select.select([self._near], [], [], seconds)[0]:
            with contextlib.suppress(OSError):  # the last program at the other end has gone
                self.screen += os.read(self._near, 65536).decode(errors="replace")


def _own(terminal: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
