"""One sandbox or container, read alone, and the rest of its pod. Pure, except for the order of reads.

Reads of one pod may overtake each other: the whole pod on the one hand, single parts of it on the other. Each gets a
number when it begins, and of each part the answer of the read that began last is kept. So a slow read of the whole pod
neither hides a container that was started meanwhile nor brings one back that was removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from msgspec import Struct, structs

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.runtime.model import ObservedContainer, ObservedPod, ObservedSandbox, age

Part = ObservedSandbox | ObservedContainer


class PartRead(Struct, frozen=True):
    """The result of reading one id; `part` None: it does not exist."""

    number: int
    id: str
    part: Part | None


def with_part(pod: ObservedPod | None, ref: PodRef, read: PartRead, *, observed_at: float) -> ObservedPod | None:
    """The pod with this part as it was read. `observed_at` counts where nothing was known of the pod before."""
    if pod is None:
        pod = ObservedPod(uid=ref.uid, name=ref.name, namespace=ref.namespace, observed_at=observed_at)
    sandboxes = [s for s in pod.sandboxes if s.id != read.id]
    containers = [c for c in pod.containers if c.id != read.id]
    if isinstance(read.part, ObservedSandbox):
        sandboxes.append(read.part)
    elif read.part is not None:
        containers.append(read.part)
    if not sandboxes and not containers:
        return None
    sandboxes.sort(key=age, reverse=True)
    containers.sort(key=age, reverse=True)
    return structs.replace(pod, sandboxes=tuple(sandboxes), containers=tuple(containers))


def with_parts(
    pod: ObservedPod | None, ref: PodRef, reads: Iterable[PartRead], *, observed_at: float
) -> ObservedPod | None:
    """The pod with all these parts as they were read."""
    for read in reads:
        pod = with_part(pod, ref, read, observed_at=observed_at)
    return pod


class _Books:
    """Of one pod: the newest read of the whole, newer ones of parts, and how many of parts are under way."""

    __slots__ = ("open", "parts", "whole")

    def __init__(self) -> None:
        self.whole = 0
        self.parts: dict[str, PartRead] = {}
        self.open = 0


class ReadOrder:
    """Numbers the reads and decides which of them is the newest."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._pods: dict[PodUID, _Books] = {}

    def begin_whole(self) -> int:
        """The number of a read of a whole pod that begins now."""
        return next(self._numbers)

    def begin_part(self, uid: PodUID) -> int:
        """The number of a read of a part that begins now; `end_part` has to follow."""
        self._pods.setdefault(uid, _Books()).open += 1
        return next(self._numbers)

    def took_whole(self, uid: PodUID, number: int) -> tuple[PartRead, ...]:
        """The reads of parts that are newer than this read of the whole pod."""
        books = self._pods.get(uid)
        if books is None:
            return ()
        books.whole = max(books.whole, number)
        books.parts = {one: read for one, read in books.parts.items() if read.number > number}
        newer = tuple(books.parts.values())
        self._tidy(uid, books)
        return newer

    def takes_part(self, uid: PodUID, read: PartRead) -> bool:
        """Whether nothing newer is known of this part; if so, it is noted."""
        books = self._pods[uid]
        known = books.parts.get(read.id)
        if read.number < books.whole or (known is not None and read.number < known.number):
            return False
        books.parts[read.id] = read
        return True

    def end_part(self, uid: PodUID) -> None:
        """A read of a part is over."""
        books = self._pods[uid]
        books.open -= 1
        self._tidy(uid, books)

    def _tidy(self, uid: PodUID, books: _Books) -> None:
        if not books.open and not books.parts:
            del self._pods[uid]
