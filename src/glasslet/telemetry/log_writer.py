"""Writes log lines to a stream from a thread of its own, so that a reader that stops cannot stop the agent.

The buffer is bounded: when it is full, new lines are dropped and counted, and the count is written once there is room.
Lines come in crowds, and each wake-up of the thread takes the interpreter away from the agent: so the first line of a
crowd waits a moment for the others.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TextIO

CAPACITY = 10_000
"""Lines kept while the stream does not take any."""
GATHERING = 0.02
"""Seconds that the first line of a crowd waits for the others."""
BLOCKED_AFTER = 120.0
"""Seconds without progress after which the `log` health check fails (behaviour of the Go kubelet)."""


class LogWriter:
    """Owns the stream. `write` may be called from any thread and never waits."""

    def __init__(self, stream: TextIO, *, capacity: int = CAPACITY) -> None:
        self._stream = stream
        self._capacity = capacity
        self._lines: deque[str] = deque()
        self._ready = threading.Condition()
        self._urgent = threading.Event()
        self._dropped = 0
        self._busy = False
        self._closing = False
        self._last_progress = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Takes one line, without its line break."""
        with self._ready:
            if len(self._lines) >= self._capacity:
                self._dropped += 1
                return
            if not self._lines and not self._busy:
                self._last_progress = time.monotonic()
            self._lines.append(line)
            if len(self._lines) == 1:
                self._ready.notify_all()

    def problem(self) -> str | None:
        """The problem for the `log` health check; None while lines get out."""
        with self._ready:
            waiting = bool(self._lines) or self._busy
            stuck = time.monotonic() - self._last_progress > BLOCKED_AFTER
        return "logging blocked" if waiting and stuck else None

    def flush(self, timeout: float = 1.0) -> bool:
        """Waits until all lines taken so far are out, at most `timeout` seconds. False if some are not."""
        deadline = time.monotonic() + timeout
        self._urgent.set()
        with self._ready:
            while self._lines or self._busy:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._ready.wait(left)
        return True

    def close(self, timeout: float = 1.0) -> None:
        """Flushes and ends the thread; a stuck stream is left behind after `timeout` seconds."""
        self.flush(timeout)
        with self._ready:
            self._closing = True
            self._ready.notify_all()
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._ready:
                self._busy = False
                self._ready.notify_all()
                while not self._lines and not self._closing:
                    self._ready.wait()
            self._urgent.wait(GATHERING)
            self._urgent.clear()
            with self._ready:
                if not self._lines:
                    return
                batch = list(self._lines)
                self._lines.clear()
                dropped, self._dropped = self._dropped, 0
                self._busy = True
            if dropped:
                batch.append(f"[{dropped} log lines dropped: nobody reads them]")
            self._put("\n".join(batch) + "\n")
            with self._ready:
                self._last_progress = time.monotonic()

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # The stream is closed or its reader has ended: there is no place left to report it.
            return
