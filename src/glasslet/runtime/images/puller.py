"""Pulls one image: queue, throttle, every credential in turn. Equal requests share one pull."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from glasslet.concurrency.clock import Clock
from glasslet.concurrency.token_bucket import TokenBucket
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import ImagePullFailed, RuntimeCallError
from glasslet.runtime.images.progress_watch import PullWatch
from glasslet.runtime.images.queue import PullQueue
from glasslet.runtime.model import Image
from glasslet.runtime.protocols import ImageService, RegistryAuth
from glasslet.runtime.spec import SandboxSpec

MOST_CREDENTIALS = 100
"""Tries for one pull: each is a request to the registry, and a pod's Secrets can hold tens of thousands."""


class PullRequest(Struct, frozen=True, kw_only=True):
    """One pull. `sandbox` is the pod's, for the runtime; `auths` are tried in order, () is anonymous; `handler` is the
    runtime handler that will use the image, "" for all."""

    image: str
    auths: tuple[RegistryAuth, ...] = ()
    sandbox: SandboxSpec | None = None
    handler: str = ""


class Pulled(Struct, frozen=True):
    """A pull that succeeded; `seconds` without the time in the queue; `used`: which of the credentials opened the
    registry, None if it was pulled without any."""

    image: Image
    seconds: float
    used: int | None = None


class PullFailed(Struct, frozen=True):
    """A pull that failed: one error per credential tried."""

    errors: tuple[RuntimeCallError, ...]


class Puller:
    """One pull per (image, credentials, handler) at a time: later requests for the same get the outcome of the first.

    The first one pulls in its own task, so that the wait is its own; if it is cancelled, the next one starts over (the
    runtime keeps what it has downloaded).
    """

    def __init__(
        self,
        *,
        images: ImageService,
        queue: PullQueue,
        throttle: TokenBucket,
        recorder: Recorder,
        clock: Clock,
        watch: PullWatch,
    ) -> None:
        self._images = images
        self._queue = queue
        self._throttle = throttle
        self._recorder = recorder
        self._clock = clock
        self._watch = watch
        self._under_way: dict[tuple[object, ...], asyncio.Future[Pulled | PullFailed | None]] = {}

    def ahead(self) -> Mapping[str, int]:
        """For each image whose pull is queued: how many pulls come before it."""
        return self._queue.ahead()

    async def pull(self, request: PullRequest) -> Pulled | PullFailed:
        """Pulls, or waits for an equal pull that is under way."""
        # Credentials are the same wherever they come from.
        key = (request.image, tuple(replace(auth, source=None) for auth in request.auths), request.handler)
        while True:
            other = self._under_way.get(key)
            if other is None:
                return await self._lead(key, request)
            with self._recorder.wait(WaitKind.QUEUE, on=f"pull of {request.image} that is under way for another pod"):
                outcome = await asyncio.shield(other)
            if outcome is not None:
                return outcome

    async def _lead(self, key: tuple[object, ...], request: PullRequest) -> Pulled | PullFailed:
        done: asyncio.Future[Pulled | PullFailed | None] = asyncio.get_running_loop().create_future()
        self._under_way[key] = done
        outcome = None
        try:
            async with self._queue.turn(request.image):
                with self._watch.running(request.image):
                    outcome = await self._try_all(request)
            return outcome
        finally:
            del self._under_way[key]
            done.set_result(outcome)

    async def _try_all(self, request: PullRequest) -> Pulled | PullFailed:
        began = self._clock.monotonic()
        if not self._throttle.take(began):
            return PullFailed((ImagePullFailed("pull QPS exceeded"),))
        errors: list[RuntimeCallError] = []
        for place, auth in enumerate(request.auths or (None,)):
            try:
                reference = await self._images.pull_image(request.image, auth, request.sandbox)
            except RuntimeCallError as error:
                errors.append(error)
                continue
            image = await self._details(request, reference)
            return Pulled(image, self._clock.monotonic() - began, None if auth is None else place)
        return PullFailed(tuple(errors))

    async def _details(self, request: PullRequest, reference: str) -> Image:
        """Reads size and user of the present image; goes on without them if the call fails."""
        try:
            found = await self._images.image_status(request.image, request.handler)
        except RuntimeCallError:
            found = None
        return found or Image(id=reference)
