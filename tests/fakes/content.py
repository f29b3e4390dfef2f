"""A content store in memory, in the place of containerd's: layers that come in as a test says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from glasslet.concurrency.clock import Clock
from glasslet.record.recorder import Recorder
from glasslet.runtime.errors import RuntimeRejected
from glasslet.runtime.images.progress import Ingest, Layer
from glasslet.runtime.images.progress_watch import PullEvents, PullWatch
from glasslet.runtime.images.reference import ImageName


class FakeContent:
    """`images`: the layers by repository; `arriving`: what is downloaded now; `there`: digests of whole layers. With
    `implemented` off it answers as a runtime that is no containerd."""

    def __init__(self, *, implemented: bool = True) -> None:
        self.implemented = implemented
        self.images: dict[str, tuple[Layer, ...]] = {}
        self.arriving: dict[str, tuple[int, int]] = {}
        self.there: set[str] = set()
        self.asked = 0
        self.before_answer: Callable[[], None] = lambda: None

    async def layer_ingests(self) -> tuple[Ingest, ...]:
        self.asked += 1
        self.before_answer()
        if not self.implemented:
            raise RuntimeRejected("PullImage", "unknown service", code="UNIMPLEMENTED")
        return tuple(Ingest(digest, done, total) for digest, (done, total) in self.arriving.items())

    async def layers_of(self, image: ImageName, arriving: Collection[str]) -> tuple[Layer, ...] | None:
        layers = self.images.get(image.repository)
        return layers if layers and any(layer.digest in arriving for layer in layers) else None

    async def present(self, digests: Sequence[str]) -> frozenset[str]:
        return frozenset(self.there & set(digests))


def silent_watch(recorder: Recorder, events: PullEvents, clock: Clock) -> PullWatch:
    """For parts that need a watch in tests of other things."""
    return PullWatch(content=FakeContent(implemented=False), recorder=recorder, events=events, clock=clock)
