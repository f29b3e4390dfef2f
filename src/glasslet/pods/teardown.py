"""The steps from "stop" to "nothing is left of the pod". The worker decides which of them is due."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from glasslet.exchange.claims import DeviceClaimProblem
from glasslet.pods.collaborators import WARNING, Observed, ResourceClaims
from glasslet.pods.executor import Executor
from glasslet.pods.failures import Retry, StepFailed
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner import POD_LEVEL
from glasslet.pods.reporting import Reporting
from glasslet.pods.status.last_words import LastWords
from glasslet.pods.verbs.grace import MIN_GRACE
from glasslet.record.stations import Station
from glasslet.telemetry.metrics.pods import PodWork


class PodTeardown:
    """Takes pods down, for any number of workers. Each step returns what it failed with, None once it is done."""

    def __init__(
        self,
        *,
        executor: Executor,
        observed: Observed,
        last_words: LastWords,
        claims: ResourceClaims,
        report: Reporting,
    ) -> None:
        self._executor = executor
        self._observed = observed
        self._last_words = last_words
        self._claims = claims
        self._report = report

    async def stop(self, memory: PodMemory, grace: int) -> StepFailed | None:
        """Stops all that runs of the pod within `grace` seconds, reads its termination messages, and gives back its
        claims: while it has one, its end is not reported, as others might claim its devices."""
        try:
            async with self._stopping(f"grace {grace} s"):
                with self._report.counted(PodWork.KILL):
                    await self._executor.stop(memory, grace=grace)
        except StepFailed as failure:
            self._report.events(memory.ref, WARNING, "FailedKillPod", f"error killing pod: {failure.why}")
            return failure
        await self._last_words.read(memory, self._observed.get(memory.ref.uid))
        return await self._give_back_claims(memory)

    async def stop_again(self, memory: PodMemory) -> StepFailed | None:
        """Stops containers of a pod that has ended."""
        try:
            await self._executor.stop(memory, grace=MIN_GRACE)
        except StepFailed as failure:
            return failure
        return None

    async def clean_up(self, memory: PodMemory) -> StepFailed | None:
        """Removes volumes and cgroup of a stopped pod."""
        try:
            async with self._stopping("volumes, cgroup"):
                with self._report.counted(PodWork.TERMINATED):
                    await self._executor.give_back(memory)
        except StepFailed as failure:
            return failure
        return None

    async def remove(self, memory: PodMemory) -> StepFailed | None:
        """Removes all that is left."""
        try:
            async with self._stopping("remains"):
                await self._executor.remove(memory)
        except StepFailed as failure:
            return failure
        await self._report.passed(Station.GONE)
        return None

    async def _give_back_claims(self, memory: PodMemory) -> StepFailed | None:
        if not self._claims.used_by(memory.ref):
            return None
        try:
            async with self._stopping("resource claims"):
                await self._claims.unprepare(memory.ref)
        except DeviceClaimProblem as problem:
            return StepFailed(POD_LEVEL, problem.why, retry=Retry.GROWING)
        return None

    def _stopping(self, detail: str) -> AbstractAsyncContextManager[None]:
        return self._report.at(Station.STOPPING, detail=detail)
