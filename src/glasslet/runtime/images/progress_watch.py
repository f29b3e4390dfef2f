"""Watches the pulls that run: their bytes, for all who wait for them. Asks the runtime only while a pull runs.

A pull that ends within `FIRST_AFTER` seconds is never asked about. Which layers belong to which image is known from the
image's manifest; until that is found, the one pull that runs owns all layers that come in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Final, Protocol

from msgspec import Struct

from glasslet.answers.words import duration
from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import Clock
from glasslet.record.recorder import Recorder, working_for
from glasslet.record.stations import Station
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.images.progress import (
    MAX_LAYERS,
    Ingest,
    Layer,
    PullRate,
    PullState,
    advanced,
    owned_ingests,
    progress_of,
    progress_words,
    sampled,
)
from glasslet.runtime.images.reference import ImageName, InvalidImageName, parse_image_name

logger = logging.getLogger(__name__)

FIRST_AFTER: Final = 1.0
"""Seconds from the begin of a pull to the first question."""
EVERY: Final = 2.0
"""Seconds between questions."""
FIRST_EVENT: Final = 30.0
"""Seconds from the begin of a pull to its first event about progress; the next comes after twice the time."""
LAST_EVENT: Final = 600.0
"""Seconds between events, at most."""
_SEARCHES = 5
"""How often the manifest of a pull is looked for."""


class PullContent(Protocol):
    """The runtime's content store. Every call raises RuntimeCallError, UNIMPLEMENTED where there is none."""

    async def layer_ingests(self) -> tuple[Ingest, ...]:
        """The layers that are downloaded now, of all images."""

    async def layers_of(self, image: ImageName, arriving: Collection[str]) -> tuple[Layer, ...] | None:
        """The layers of the image, one of which is among `arriving`; None if they are not known yet."""

    async def present(self, digests: Sequence[str]) -> frozenset[str]:
        """Those of these layers whose content is there."""


class PullEvents(Protocol):
    """Where API events about a pod go."""

    def __call__(self, pod: PodRef, kind: str, reason: str, message: str, field_path: str, /) -> None:
        """`kind` is Normal or Warning; `field_path` names the container (`spec.containers{main}`). Never blocks."""


class PullView(Struct, frozen=True, kw_only=True):
    """A pull that a container waits for. `progress` None: nothing is known yet, or (`unreported`) the runtime does not
    report bytes. `queued_behind`: pulls that come first, None if it runs or is not queued; `first`, `first_progress`:
    the image of the oldest of those that run, and how far it is."""

    image: str
    progress: PullRate | None = None
    unreported: bool = False
    queued_behind: int | None = None
    first: str = ""
    first_progress: PullRate | None = None


class PullFollower(Struct, frozen=True):
    """A container that waits for a pull."""

    pod: PodRef
    container: str
    field_path: str
    image: str


class PullWatch:
    """One for the node. `following` marks who waits, `running` which pulls run; `run` is the service that asks."""

    def __init__(self, *, content: PullContent, recorder: Recorder, events: PullEvents, clock: Clock) -> None:
        self._content = content
        self._recorder = recorder
        self._events = events
        self._clock = clock
        self._some = asyncio.Event()
        self._pulls: dict[str, _Pull] = {}
        self._waiting: dict[PodUID, list[PullFollower]] = {}

    @contextmanager
    def following(self, waiting: PullFollower) -> Iterator[None]:
        """The container waits for its image meanwhile."""
        uid = PodUID(waiting.pod.uid)
        of_pod = self._waiting.setdefault(uid, [])
        of_pod.append(waiting)
        try:
            yield
        finally:
            of_pod.remove(waiting)
            if not of_pod:
                del self._waiting[uid]

    @contextmanager
    def running(self, image: str) -> Iterator[None]:
        """The runtime pulls this image meanwhile."""
        pull = self._pulls.get(image)
        if pull is None:
            pull = self._pulls[image] = _Pull(image, self._clock.monotonic())
        pull.runs += 1
        self._some.set()
        try:
            yield
        finally:
            pull.runs -= 1
            if not pull.runs:
                del self._pulls[image]
                if not self._pulls:
                    self._some.clear()

    def views(self, uid: PodUID, ahead: Callable[[], Mapping[str, int]]) -> Mapping[str, PullView]:
        """What the pod's containers wait for, by name. `ahead`: how many pulls come before a queued one."""
        waiting = self._waiting.get(uid)
        return {it.container: self._view(it.image, ahead) for it in waiting} if waiting else {}

    def _view(self, image: str, ahead: Callable[[], Mapping[str, int]]) -> PullView:
        pull = self._pulls.get(image)
        if pull is None:
            first = next(iter(self._pulls.values()), None)
            return PullView(
                image=image,
                queued_behind=ahead().get(image),
                first=first.image if first is not None else "",
                first_progress=first.progress(self._clock.monotonic()) if first is not None else None,
            )
        return PullView(image=image, progress=pull.progress(self._clock.monotonic()), unreported=pull.unreported)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(FIRST_AFTER)
            while self._pulls:
                await self._look()
                await asyncio.sleep(EVERY)

    async def _look(self) -> None:
        """Asks once for all pulls."""
        pulls = list(self._pulls.values())
        try:
            ingests = await self._content.layer_ingests()
            for pull in pulls:
                await self._follow(pull, ingests, alone=len(pulls) == 1)
        except RuntimeCallError as error:
            for pull in pulls:
                pull.unreported = pull.state is None
            if error.code != "UNIMPLEMENTED":
                logger.debug("progress of pulls is not known", extra={"error": str(error)})
            return
        for pull in pulls:
            if pull.runs:
                self._announce(pull)

    async def _follow(self, pull: _Pull, ingests: tuple[Ingest, ...], *, alone: bool) -> None:
        pull.unreported = False
        if pull.layers is None and ingests and pull.name is not None and pull.searches < _SEARCHES:
            pull.searches += 1
            pull.layers = await self._content.layers_of(pull.name, {ingest.digest for ingest in ingests})
        if pull.layers is None and alone:
            pull.see(ingests)
        layers = pull.layers or tuple(pull.seen.values())
        if not layers:
            return
        own = owned_ingests(layers, ingests)
        arriving = {ingest.digest for ingest in own}
        unsure = [layer.digest for layer in layers if layer.digest not in pull.present and layer.digest not in arriving]
        pull.present |= await self._content.present(unsure)
        sample = sampled(at=self._clock.monotonic(), layers=layers, present=pull.present, ingests=own)
        pull.state = advanced(pull.state, sample)

    def _announce(self, pull: _Pull) -> None:
        """Events and records of a long pull: now and then, and when it stalls."""
        now = self._clock.monotonic()
        progress = pull.progress(now)
        if progress is None or not progress.total:
            return
        stalls = progress.stalled is not None
        if stalls and not pull.stalled:
            words = progress_words(progress)
            what = f"has got no byte for {duration(progress.stalled or 0)}: {words.partition(', stalled')[0]}"
            self._tell(pull, words, "Warning", "PullStalled", what)
        elif not stalls and now >= pull.next_event:
            pull.event_after = min(2 * pull.event_after, LAST_EVENT)
            pull.next_event = now + pull.event_after
            words = progress_words(progress)
            what = f"has run for {duration(now - pull.began)}: {words}"
            self._tell(pull, words, "Normal", "PullProgress", what)
        pull.stalled = stalls

    def _tell(self, pull: _Pull, words: str, kind: str, reason: str, what: str) -> None:
        """One event and one change in the record, for each container that waits for the pull."""
        for waiting in chain.from_iterable(self._waiting.values()):
            if waiting.image == pull.image:
                with working_for(waiting.pod, container=waiting.container, station=Station.IMAGE):
                    text = f'The pull of image "{pull.image}" {what}'
                    self._events(waiting.pod, kind, reason, text, waiting.field_path)
                    self._recorder.observed(f"pull of {pull.image}", pull.told, words, container=waiting.container)
        pull.told = words


class _Pull:
    """One pull that runs. `runs`: how many requests of it do, with different credentials."""

    __slots__ = (
        "began",
        "event_after",
        "image",
        "layers",
        "name",
        "next_event",
        "present",
        "runs",
        "searches",
        "seen",
        "stalled",
        "state",
        "told",
        "unreported",
    )

    def __init__(self, image: str, began: float) -> None:
        self.image = image
        self.name = _parsed(image)
        self.began = began
        self.runs = 0
        self.searches = 0
        self.layers: tuple[Layer, ...] | None = None
        self.seen: dict[str, Layer] = {}
        self.present: frozenset[str] = frozenset()
        self.state: PullState | None = None
        self.unreported = False
        self.stalled = False
        self.told = "begun"
        self.event_after = FIRST_EVENT
        self.next_event = began + FIRST_EVENT

    def see(self, ingests: Iterable[Ingest]) -> None:
        """Takes these layers for its own."""
        for ingest in ingests:
            if len(self.seen) < MAX_LAYERS:
                self.seen[ingest.digest] = Layer(ingest.digest, ingest.total)

    def progress(self, now: float) -> PullRate | None:
        """None while nothing is known."""
        return progress_of(self.state, now=now) if self.state is not None else None


def _parsed(image: str) -> ImageName | None:
    try:
        return parse_image_name(image)
    except InvalidImageName:
        return None
