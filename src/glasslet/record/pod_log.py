"""The bounded list of events of one pod: its beginning and its newest part are kept, the middle is shed first."""

from __future__ import annotations

from collections import deque

from glasslet.api.pod_ref import PodRef
from glasslet.record.events import Event, FindingMade, FindingWithdrawn

_ROUTINE_KEPT = 24
_FINDINGS_KEPT = 64


class PodLog:
    """Events in memory, on the monotonic clock. `unwritten` counts the newest events that are not on disk yet."""

    __slots__ = ("dropped", "ended", "findings", "head", "head_size", "pod", "routine", "tail", "touched", "unwritten")

    def __init__(self, pod: PodRef | None, *, head_size: int, tail_size: int) -> None:
        self.pod = pod
        self.head: list[Event] = []
        self.head_size = head_size
        self.tail: deque[Event] = deque(maxlen=tail_size)
        self.findings: set[str] = set()
        self.dropped = 0
        self.routine = 0
        self.unwritten = 0
        self.ended = False
        self.touched = 0.0

    def __len__(self) -> int:
        return len(self.head) + len(self.tail)

    def append(self, event: Event) -> None:
        """Adds an event; when full, the oldest after the pod's beginning goes."""
        self.unwritten += 1
        if len(self.head) < self.head_size:
            self.head.append(event)
            return
        if len(self.tail) == self.tail.maxlen:
            self.dropped += 1
        self.tail.append(event)

    def keeps_routine(self) -> bool:
        """Counts a routine wait (probes, the agent's own polling); True while they are still kept one by one."""
        self.routine += 1
        return self.routine <= _ROUTINE_KEPT

    def is_new(self, finding: FindingMade) -> bool:
        """False for a finding that was made before."""
        if finding.text in self.findings:
            return False
        if len(self.findings) >= _FINDINGS_KEPT:
            self.findings.clear()
        self.findings.add(finding.text)
        return True

    def withdraw(self, over: FindingWithdrawn) -> bool:
        """False for a finding that was not made, or no longer holds anyway."""
        if over.text not in self.findings:
            return False
        self.findings.discard(over.text)
        return True

    def events(self) -> list[Event]:
        """All that is kept, in the order in which it ended."""
        return [*self.head, *self.tail]

    def take_unwritten(self) -> tuple[list[Event], int]:
        """Events that are to be written now, and how many were shed before they could be."""
        count, self.unwritten = self.unwritten, 0
        if count == 0:
            return [], 0
        kept = self.events()[-count:]
        return kept, count - len(kept)

    def shrink(self) -> int:
        """Gives up the older half of the newest part; how many events that were."""
        going = len(self.tail) - len(self.tail) // 2
        for _ in range(going):
            self.tail.popleft()
        self.dropped += going
        return going
