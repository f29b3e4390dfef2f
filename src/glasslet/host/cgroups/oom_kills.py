"""OOM kills of cgroups: read of each one only after the machine counted one more."""

from __future__ import annotations

import time
from collections.abc import Callable

from glasslet.host.kernel_text import contents, number

_LOOK_EVERY = 0.5
_FORGET_EVERY = 600.0
_KEY = b"\noom_kill "


class OomKills:
    """Counts of groups, kept while the machine's own count stays. Not for two threads at once."""

    def __init__(self, *, proc: str = "/proc", clock: Callable[[], float] = time.monotonic) -> None:
        self._vmstat = f"{proc}/vmstat"
        self._clock = clock
        self._machine: int | None = None
        self._looked = -_LOOK_EVERY
        self._kept: dict[str, int] = {}
        self._forgot = clock()

    def get(self, group: str, read: Callable[[], int]) -> int:
        """Returns the number of `read`, now or when it was read last."""
        now = self._clock()
        if now - self._looked >= _LOOK_EVERY:
            self._look(now)
        if self._machine is None:
            return read()
        found = self._kept.get(group)
        if found is None:
            found = self._kept[group] = read()
        return found

    def _look(self, now: float) -> None:
        """The machine's count is read before any group's: a kill in between is found at the next look."""
        _, _, rest = contents(self._vmstat).partition(_KEY)
        machine = number(rest.partition(b"\n")[0])
        if machine != self._machine or now - self._forgot >= _FORGET_EVERY:
            # The second: removed groups must not be kept.
            self._kept.clear()
            self._forgot = now
        self._machine, self._looked = machine, now
