"""Threads that wait a moment for more work before they end: starting one costs more than most of what they do.

They are daemons: one that the kernel never lets go of does not hold up exit.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable

IDLE_SECONDS = 10.0


class SpareThreads:
    """`run` may be called from one thread only. Every piece of work has a thread of its own at once."""

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._idle: deque[queue.SimpleQueue[tuple[str, Callable[[], None]]]] = deque()

    def run(self, name: str, work: Callable[[], None]) -> None:
        """Begins at once, in a thread of that name. `work` must not raise."""
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = queue.SimpleQueue()
            threading.Thread(target=self._live, args=(inbox,), name=name, daemon=True).start()
        inbox.put((name, work))

    def _live(self, inbox: queue.SimpleQueue[tuple[str, Callable[[], None]]]) -> None:
        me = threading.current_thread()
        while True:
            try:
                me.name, work = inbox.get(timeout=self._idle_seconds)
            except queue.Empty:
                try:
                    self._idle.remove(inbox)
                except ValueError:
                    # Taken for more work at this very moment: it is on its way.
                    continue
                return
            work()
            del work
            me.name = "host: idle"
            self._idle.append(inbox)
