"""A critical pod waits until the pods that make room for it have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from glasslet.api.pod_ref import PodRef
from glasslet.pods.collaborators import WARNING
from glasslet.pods.reporting import Reporting
from glasslet.record.stations import WaitKind

PREEMPTING = "Preempting"
PREEMPTED = "Preempted in order to admit critical pod"
DISRUPTED = "Pod was preempted by Kubelet to accommodate a critical pod."
_LEAST_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that is being ended for another. `grace`: seconds it was given; `stopped` once nothing of it runs."""

    ref: PodRef
    grace: int
    stopped: asyncio.Event


async def wait_for_room(victims: Sequence[Victim], report: Reporting) -> None:
    """Returns when all have stopped, or had one and a half times their grace (10 s at least): who resists goes on being
    stopped, but the critical pod starts."""
    deadline = report.clock.monotonic() + max((_patience(one) for one in victims), default=0.0)
    for victim in victims:
        try:
            with report.recorder.wait(WaitKind.ADMISSION, on=f"end of {victim.ref}, which makes room"):
                async with asyncio.timeout(max(0.0, deadline - report.clock.monotonic())):
                    await victim.stopped.wait()
        except TimeoutError:
            text = "Container runtime did not kill the pod within specified grace period."
            report.events(victim.ref, WARNING, "ExceededGracePeriod", text)


def _patience(victim: Victim) -> float:
    return max(_LEAST_WAIT, victim.grace * 1.5)
