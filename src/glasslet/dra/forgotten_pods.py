"""Claims of pods that are gone without a worker: deleted by force, or while no agent ran. They are given back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.dra.claims_of_pods import ClaimsOfPods
from glasslet.exchange.claims import DeviceClaimProblem
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFindings

logger = logging.getLogger(__name__)

PERIOD = 60.0
"""Seconds between looks, as upstream; the first comes as soon as all pods are known."""
_UNKNOWN_PAUSE = 0.5


class ForgottenPods:
    """`known`: the sources and the runtime have told their pods; `alive`: somebody wants the pod, works on it, or the
    runtime has something of it."""

    def __init__(
        self,
        *,
        claims: ClaimsOfPods,
        known: Callable[[], bool],
        alive: Callable[[PodUID], bool],
        recorder: Recorder,
    ) -> None:
        self._claims = claims
        self._known = known
        self._alive = alive
        self._troubles: StandingFindings[str] = StandingFindings(recorder)

    async def run(self) -> None:
        """Looks each minute until cancelled."""
        while True:
            known = self._known()
            if known:
                await self.look()
            await asyncio.sleep(PERIOD if known else _UNKNOWN_PAUSE)

    async def look(self) -> None:
        """Gives back what no pod uses any more: each pod by itself, as a driver may hang."""
        async with asyncio.TaskGroup() as group:
            for uid in sorted(self._claims.book.pods()):
                if not self._alive(PodUID(uid)):
                    group.create_task(self._give_back(uid), name=f"claims of the gone pod {uid}")

    async def _give_back(self, uid: str) -> None:
        entries = self._claims.book.of_pod(uid)
        names = ", ".join(str(entry.id) for entry in entries)
        namespace = entries[0].id.namespace if entries else ""
        try:
            await self._claims.unprepare(PodRef(namespace=namespace, name="", uid=PodUID(uid)))
        except DeviceClaimProblem as problem:
            self._troubles.is_(uid, f"resource claims {names} of a pod that is gone ({uid}): {problem.why}")
            return
        self._troubles.over(uid)
        logger.info("resource claims of a gone pod given back", extra={"uid": uid, "claims": names})
