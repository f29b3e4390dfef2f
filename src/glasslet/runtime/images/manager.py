"""Makes a container's image present, or returns the reason why it cannot."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from glasslet.api.container import Container, EphemeralContainer
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.concurrency.clock import Clock
from glasslet.concurrency.token_bucket import TokenBucket
from glasslet.record.recorder import Recorder
from glasslet.record.way import CRI, NO_STOPS, PodHolder
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.images.back_off import INITIAL, MAXIMUM, PullBackOff
from glasslet.runtime.images.outcomes import ImageProblem, ImageReason, error_words, pull_problem, size_bucket
from glasslet.runtime.images.progress_watch import PullEvents, PullFollower, PullView, PullWatch
from glasslet.runtime.images.puller import MOST_CREDENTIALS, Pulled, Puller, PullFailed, PullRequest
from glasslet.runtime.images.queue import PullQueue
from glasslet.runtime.images.reference import InvalidImageName, default_pull_policy, with_default_tag
from glasslet.runtime.images.verification import IntentNotRecorded, PullVerification
from glasslet.runtime.model import Image
from glasslet.runtime.observed.durations import go_duration
from glasslet.runtime.protocols import ImageService, RegistryAuth
from glasslet.runtime.spec import SandboxSpec

logger = logging.getLogger(__name__)


AskPlugins = Callable[[], Awaitable[Sequence[RegistryAuth]]]
"""Gives the credentials of credential provider plugins; may take a while."""


class PullMetrics(Protocol):
    """Metrics of pulls."""

    def pulled(self, size_label: str, seconds: float) -> None:
        """A successful pull, the time in the queue included (`kubelet_image_pull_duration_seconds`)."""


class PullPolicy(Struct, frozen=True, kw_only=True):
    """The node's settings for pulls. Fields named after KubeletConfiguration; back-off in seconds."""

    serialize_image_pulls: bool = True
    max_parallel_image_pulls: int | None = None
    registry_pull_qps: float = 5.0
    registry_burst: int = 10
    back_off_initial: float = INITIAL
    back_off_maximum: float = MAXIMUM
    by_handler: bool = False
    """Gate RuntimeClassInImageCriApi: each runtime handler has images of its own."""

    @property
    def limit(self) -> int | None:
        """How many pulls may run at a time; None: any number."""
        if self.serialize_image_pulls:
            return 1
        limit = self.max_parallel_image_pulls
        return limit if limit is not None and limit >= 1 else None


class ImageManager:
    """One for the node: its queue, back-offs and throttle are shared by all pods."""

    def __init__(
        self,
        *,
        images: ImageService,
        recorder: Recorder,
        events: PullEvents,
        clock: Clock,
        watch: PullWatch,
        policy: PullPolicy | None = None,
        metrics: PullMetrics | None = None,
        verification: PullVerification | None = None,
        stops: PodHolder = NO_STOPS,
    ) -> None:
        policy = policy or PullPolicy()
        self._stops = stops
        self._images = images
        self._recorder = recorder
        self._events = events
        self._clock = clock
        self._watch = watch
        self._metrics = metrics
        self._verification = verification
        self._by_handler = policy.by_handler
        self._back_off = PullBackOff(initial=policy.back_off_initial, maximum=policy.back_off_maximum)
        self._puller = Puller(
            images=images,
            queue=PullQueue(limit=policy.limit, recorder=recorder),
            throttle=TokenBucket(rate=policy.registry_pull_qps, burst=policy.registry_burst),
            recorder=recorder,
            clock=clock,
            watch=watch,
        )

    def pulls(self, uid: PodUID) -> Mapping[str, PullView]:
        """The pulls that the pod's containers wait for, by container."""
        return self._watch.views(uid, self._puller.ahead)

    async def ensure(
        self,
        pod: Pod,
        container: Container | EphemeralContainer,
        *,
        sandbox: SandboxSpec | None,
        auths: Sequence[RegistryAuth] = (),
        ask_plugins: AskPlugins | None = None,
    ) -> Image | ImageProblem:
        """The image of this container, pulled if the policy requires it. `ask_plugins` is called only before a pull;
        its credentials are tried after `auths`.

        Sends all image events of the container, also the closing `Failed: Error: <reason>`. Raises nothing of the
        runtime: a failed call becomes an ImageProblem.
        """
        handler = sandbox.runtime_handler if sandbox is not None and self._by_handler else ""
        asked = _Asked(pod, container, tuple(auths), sandbox, ask_plugins, handler)
        outcome = await self._ensure(asked)
        if isinstance(outcome, ImageProblem):
            self._recorder.decided(
                "no image", container=container.name, image=container.image, reason=outcome.reason, why=outcome.message
            )
            self._tell(asked, "Warning", "Failed", f"Error: {outcome.reason}")
        return outcome

    async def _ensure(self, asked: _Asked) -> Image | ImageProblem:
        written = asked.container.image
        try:
            image = with_default_tag(written)
        except InvalidImageName as error:
            message = f'Failed to apply default image tag "{written}": {error}'
            self._tell(asked, "Warning", "InspectFailed", message)
            return ImageProblem(reason=ImageReason.INVALID_NAME, message=message)
        policy = asked.container.image_pull_policy or default_pull_policy(written)
        if policy != "Always":
            found = await self._find(asked, image, policy)
            if found is not None:
                return found
        return await self._pull(asked, image, policy)

    async def _find(self, asked: _Asked, image: str, policy: str) -> Image | ImageProblem | None:
        """The image if it is here; None if it has to be pulled."""
        written = asked.container.image
        try:
            found = await self._images.image_status(image, asked.handler)
        except RuntimeCallError as error:
            # The quotes are empty upstream too: the name is not known where the text is made.
            message = f'Failed to inspect image "": {error_words((error,))}'
            self._tell(asked, "Warning", "InspectFailed", message)
            return ImageProblem(reason=ImageReason.INSPECT_FAILED, message=message)
        if found is not None and await self._may_use(asked, found):
            self._recorder.decided("image present", container=asked.container.name, image=image, policy=policy)
            # Where rights are verified, the event says so.
            rights = " and can be accessed by the pod" if self._verification is not None else ""
            self._tell(asked, "Normal", "Pulled", f'Container image "{written}" already present on machine{rights}')
            return found
        if policy != "Never":
            return None
        message = f'Container image "{written}" is not present with pull policy of Never'
        self._tell(asked, "Warning", "ErrImageNeverPull", message)
        return ImageProblem(reason=ImageReason.NEVER_PULL, message=message)

    async def _may_use(self, asked: _Asked, found: Image) -> bool:
        """Whether the pod may use an image that is there without pulling it."""
        if self._verification is None:
            return True
        written = asked.container.image
        if not await self._verification.must_pull(written, found.id, await asked.all_auths()):
            return True
        self._recorder.decided("image present, right to it not proved", container=asked.container.name, image=written)
        return False

    async def _pull(self, asked: _Asked, image: str, policy: str) -> Image | ImageProblem:
        written, name = asked.container.image, asked.container.name
        began = self._clock.monotonic()
        held = self._back_off.hold(asked.ref.uid, written, began)
        if held is not None:
            message = f'Back-off pulling image "{written}"'
            self._tell(asked, "Normal", "BackOff", message)
            return ImageProblem(reason=ImageReason.BACK_OFF, message=f"{message}: {held.error}", retry_at=held.until)
        self._tell(asked, "Normal", "Pulling", f'Pulling image "{written}"')
        auths = await asked.all_auths()
        if len(auths) > MOST_CREDENTIALS:
            self._recorder.decided(
                "only the first credentials are tried", container=name, fit=len(auths), tried=MOST_CREDENTIALS
            )
            auths = auths[:MOST_CREDENTIALS]
        self._recorder.decided("Pulling", container=name, image=image, policy=policy, credentials=len(auths))
        request = PullRequest(image=image, auths=auths, sandbox=asked.sandbox, handler=asked.handler)
        # Before the pull has a place in the queue or others wait for it: only this pod is held.
        if await self._hold(request, name):
            began = self._clock.monotonic()
        try:
            with self._watch.following(PullFollower(asked.ref, name, asked.field_path, image)):
                outcome = await self._pull_noted(written, request)
        except IntentNotRecorded as error:
            told = f'Failed to record image pull intent for container image "{written}": {error}'
            return ImageProblem(reason=str(error), message=told)
        now = self._clock.monotonic()
        await self._hold(request, name, after=True)
        if isinstance(outcome, PullFailed):
            return self._failed(asked, outcome, now)
        self._pulled(asked, outcome, now - began)
        self._back_off.forget_stale(now)
        return outcome.image

    async def _hold(self, request: PullRequest, container: str, *, after: bool = False) -> bool:
        if not self._stops.armed:
            return False
        facts = {"request": {"image": request.image, "credentials": len(request.auths)}}
        return await self._stops.at(f"{CRI}PullImage", container=container, after=after, facts=lambda: facts)

    async def _pull_noted(self, written: str, request: PullRequest) -> Pulled | PullFailed:
        """Pulls; where rights are verified, records the credentials. Raises IntentNotRecorded."""
        noted = self._verification
        if noted is None:
            return await self._puller.pull(request)
        await noted.intend(written)
        try:
            outcome = await self._puller.pull(request)
        except BaseException:
            await noted.failed(written)
            raise
        if isinstance(outcome, Pulled):
            auth = None if outcome.used is None else request.auths[outcome.used]
            await noted.pulled(written, outcome.image.id, auth)
        else:
            await noted.failed(written)
        return outcome

    def _pulled(self, asked: _Asked, pulled: Pulled, seconds: float) -> None:
        written, size = asked.container.image, pulled.image.size
        took, waited = _whole_milliseconds(pulled.seconds), _whole_milliseconds(seconds)
        text = (
            f'Successfully pulled image "{written}" in {took} ({waited} including waiting). Image size: {size} bytes.'
        )
        self._recorder.decided("Pulled", container=asked.container.name, image=written, size=size, took=took)
        self._tell(asked, "Normal", "Pulled", text)
        if self._metrics is not None:
            self._metrics.pulled(size_bucket(size), seconds)

    def _failed(self, asked: _Asked, failed: PullFailed, now: float) -> ImageProblem:
        written = asked.container.image
        reason, message, words = pull_problem(written, failed.errors)
        self._tell(asked, "Warning", "Failed", f'Failed to pull image "{written}": {words}')
        held = self._back_off.failed(asked.ref.uid, written, f"{reason}: {message}", now)
        return ImageProblem(reason=reason, message=message, retry_at=held.until)

    def _tell(self, asked: _Asked, kind: str, reason: str, message: str) -> None:
        self._events(asked.ref, kind, reason, message, asked.field_path)


class _Asked:
    """One call of `ensure`."""

    __slots__ = ("_all", "_ask_plugins", "_auths", "container", "field_path", "handler", "ref", "sandbox")

    def __init__(
        self,
        pod: Pod,
        container: Container | EphemeralContainer,
        auths: tuple[RegistryAuth, ...],
        sandbox: SandboxSpec | None,
        ask_plugins: AskPlugins | None,
        handler: str,
    ) -> None:
        self.ref = pod_ref(pod)
        self.container = container
        self._auths = auths
        self._ask_plugins = ask_plugins
        self._all: tuple[RegistryAuth, ...] | None = None
        self.sandbox = sandbox
        self.handler = handler
        self.field_path = field_path(pod, container.name)

    async def all_auths(self) -> tuple[RegistryAuth, ...]:
        """The given credentials, then those of plugins."""
        if self._all is None:
            more = () if self._ask_plugins is None else await self._ask_plugins()
            self._all = (*self._auths, *more)
        return self._all


def field_path(pod: Pod, container: str) -> str:
    """`spec.containers{main}`: how events name a container of a pod; "" if the pod has none of that name."""
    spec = pod.spec
    kinds = (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    )
    for kind, containers in kinds:
        if any(c.name == container for c in containers):
            return f"spec.{kind}{{{container}}}"
    return ""


def _whole_milliseconds(seconds: float) -> str:
    return go_duration(int(seconds * 1000 + 1e-6) / 1000)
