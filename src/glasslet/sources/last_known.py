"""The last known pods of the API server, kept on disk for an agent that starts while the server is away.

                      first list of pods                          no answer for PATIENCE seconds
    run ──▶ wait ───────────────────────▶ written after changes ◀──────────────────────────────── recalled

Switched on by GLASSLET_REMEMBER_API_PODS=true. Recalled pods are managed as any; but the API is no source that has
reported, so nothing unknown is cleaned up, and its first list corrects what has changed meanwhile. Kept are pods with
their statuses, the node and the services that environments name; never the content of Secrets or ConfigMaps.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.host.files.state_file import StateFile
from glasslet.host.threads import Threads
from glasslet.kubeapi.objects.services import ServiceAddress
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

SETTING = "GLASSLET_REMEMBER_API_PODS"
VERSION = 1
PATIENCE = 5.0
"""Seconds that the API server gets to answer: fresh pods are better than remembered ones."""
SETTLE = 1.0
"""Seconds between a change and the write: a burst of changes is one write."""
RETRY = 10.0
_OFFERED_EVERYWHERE = "default"
"""The namespace whose service `kubernetes` every container finds in its environment."""
_WORDS = {"true": True, "false": False}


def remembers_api_pods(environment: Mapping[str, str]) -> bool:
    """Whether it is switched on. Raises ValueError naming the variable, its value and what is allowed."""
    given = environment.get(SETTING, "false").lower()
    if given not in _WORDS:
        raise ValueError(f"environment variable {SETTING}={given!r}: want true or false")
    return _WORDS[given]


class LastKnown(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of the file. `pods` have the statuses that this agent reported last."""

    version: int = 0
    node: Node | None = None
    services: tuple[ServiceAddress, ...] = ()
    pods: tuple[Pod, ...] = ()


class LastKnownPods:
    """Owner of the file. `listed` is set once the API server has listed its pods; `now` gives the state to keep;
    `recall` takes the kept state, at most once."""

    def __init__(
        self,
        *,
        path: str,
        listed: asyncio.Event,
        now: Callable[[], LastKnown],
        recall: Callable[[LastKnown], None],
        threads: Threads,
        recorder: Recorder,
    ) -> None:
        self._file = StateFile(
            path=path, kind=LastKnown, version=VERSION, what="last known pods", finding=recorder.finding
        )
        self._listed = listed
        self._now = now
        self._recall = recall
        self._threads = threads
        self._recorder = recorder
        self._trouble = StandingFinding(recorder)
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """A pod or its status changed."""
        self._changed.set()

    async def run(self) -> None:
        """Recalls if need be, then writes after changes, until cancelled; then writes what is not written yet."""
        if not await self._answered():
            self._recall_now()
        try:
            while True:
                await self._changed.wait()
                await asyncio.sleep(SETTLE)
                self._changed.clear()
                if not await self._write():
                    await asyncio.sleep(RETRY)
                    self._changed.set()
        finally:
            if self._changed.is_set():
                self._write_at_the_end()

    async def _answered(self) -> bool:
        with self._recorder.wait(WaitKind.API_CALL, on="first list of pods, before the last known ones are recalled"):
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._listed.wait()
            except TimeoutError:
                return False
        return True

    def _recall_now(self) -> None:
        state = self._file.read()
        if state is None:
            return
        self._recorder.decided("last known pods recalled", pods=len(state.pods), because="API server does not answer")
        logger.warning("API server does not answer, goes on with the last known pods", extra={"pods": len(state.pods)})
        self._recall(state)

    async def _write(self) -> bool:
        state = self._now()
        try:
            await self._threads.run(lambda: self._file.write(state), on="file of last known pods", kind=WaitKind.QUEUE)
        except OSError as error:
            self._trouble.is_(f"last known pods cannot be written to {self._file.path}: {error.strerror}")
            return False
        self._trouble.over()
        return True

    def _write_at_the_end(self) -> None:
        try:
            self._file.write(self._now())
        except OSError as error:
            logger.warning("last known pods not written", extra={"path": self._file.path, "error": str(error)})


def needed_by(pods: Iterable[Pod], services: Iterable[ServiceAddress]) -> tuple[ServiceAddress, ...]:
    """The services that environments of these pods may name."""
    namespaces = {pod.metadata.namespace for pod in pods} | {_OFFERED_EVERYWHERE}
    return tuple(service for service in services if service.metadata.namespace in namespaces)
