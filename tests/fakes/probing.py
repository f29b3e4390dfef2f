"""A prober that says what a test wants it to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from glasslet.api.lifecycle import Probe
from glasslet.api.object import ContainerID
from glasslet.probes.answer import ProbeAnswer
from glasslet.probes.kinds import ProbeKind
from glasslet.probes.prober import ProbeSubject, Tried
from glasslet.probes.results import ProbeVerdict

PASS = ProbeAnswer(verdict=ProbeVerdict.SUCCESS, brief="status 200")
FAIL = ProbeAnswer(verdict=ProbeVerdict.FAILURE, output="HTTP probe failed with statuscode: 503", brief="status 503")
WARN = ProbeAnswer(
    verdict=ProbeVerdict.WARNING, output="Probe terminated redirects, Response body: x", brief="status 302"
)
BROKEN = ProbeAnswer(verdict=ProbeVerdict.UNKNOWN, error="no such port")


@dataclass(frozen=True)
class Probed:
    """One probe that was run: when (loop time), of which container and instance, at which host."""

    at: float
    container: str
    kind: ProbeKind
    instance: ContainerID
    host: str


@dataclass
class FakeProbing:
    """`answer(container, kind, how many times before)` says how a probe ends; `takes` seconds each."""

    answer: Callable[[str, ProbeKind, int], ProbeAnswer] = lambda _container, _kind, _number: PASS
    takes: float = 0.0
    probed: list[Probed] = field(default_factory=list)

    async def __call__(self, probe: Probe, subject: ProbeSubject) -> Tried:
        container = subject.container
        kind = next(kind for kind in ProbeKind if kind.of(container) is probe)
        number = len(self.of(container.name, kind))
        now = asyncio.get_running_loop().time()
        self.probed.append(Probed(now, container.name, kind, subject.instance, subject.host))
        await asyncio.sleep(self.takes)
        return Tried(answer=self.answer(container.name, kind, number), tries=1, total=self.takes, stalled=0.0)

    def of(self, container: str = "main", kind: ProbeKind = ProbeKind.READINESS) -> list[Probed]:
        """All probes of one kind."""
        return [one for one in self.probed if (one.container, one.kind) == (container, kind)]

    def times(self, container: str = "main", kind: ProbeKind = ProbeKind.READINESS) -> list[float]:
        """When they were run."""
        return [one.at for one in self.of(container, kind)]
