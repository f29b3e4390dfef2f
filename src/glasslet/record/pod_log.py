"""The bounded list of a pod's events: it keeps the beginning and the newest part and drops the middle first."""

from __future__ import annotations

from collections import deque

from glasslet.api.pod_ref import PodRef
from glasslet.record.events import Event, FindingMade, FindingWithdrawn

_ROUTINE_KEPT = 24
_FINDINGS_KEPT = 256


class PodLog:
    """Events in memory, on the monotonic clock. `unwritten` counts the newest events that are not on disk yet."""

    __slots__ = ("dropped", "ended", "findings", "head", "head_size", "pod", "routine", "tail", "touched", "unwritten")

    def __init__(self, pod: PodRef | None, *, head_size: int, tail_size: int) -> None:
        self.pod = pod
        self.head: list[Event] = []
        self.head_size = head_size
        self.tail: deque[Event] = deque(maxlen=tail_size)
        self.findings: dict[str, None] = {}
        """The texts that hold, oldest first."""
        self.dropped = 0
        self.routine = 0
        self.unwritten = 0
        self.ended = False
        self.touched = 0.0

    def __len__(self) -> int:
        return len(self.head) + len(self.tail)

    @property
    def revision(self) -> int:
        """How many events there were. Changes whenever one comes."""
        return self.dropped + len(self)

    def append(self, event: Event) -> None:
        """Adds an event; when full, drops the oldest after the beginning."""
        self.unwritten += 1
        if len(self.head) < self.head_size:
            self.head.append(event)
            return
        if len(self.tail) == self.tail.maxlen:
            self.dropped += 1
        self.tail.append(event)

    def keeps_routine(self) -> bool:
        """Counts a routine wait (probes, the agent's own polling); True while each is kept."""
        self.routine += 1
        return self.routine <= _ROUTINE_KEPT

    def is_new(self, finding: FindingMade) -> bool:
        """False for a finding that already holds. Beyond the bound, the oldest is forgotten."""
        if finding.text in self.findings:
            return False
        if len(self.findings) >= _FINDINGS_KEPT:
            del self.findings[next(iter(self.findings))]
        self.findings[finding.text] = None
        return True

    def withdraw(self, over: FindingWithdrawn) -> bool:
        """False for a finding that does not hold."""
        if over.text not in self.findings:
            return False
        del self.findings[over.text]
        return True

    def events(self) -> list[Event]:
        """The kept events, in the order of their ends."""
        return [*self.head, *self.tail]

    def take_unwritten(self) -> tuple[list[Event], int]:
        """The unwritten events, and how many were dropped before they could be written."""
        count, self.unwritten = self.unwritten, 0
        if count == 0:
            return [], 0
        kept = self.events()[-count:]
        return kept, count - len(kept)

    def shrink(self) -> int:
        """Drops the older half of the newest part; returns the number of events."""
        going = len(self.tail) - len(self.tail) // 2
        for _ in range(going):
            self.tail.popleft()
        self.dropped += going
        return going
