"""The state of a probe from its single results: so many equal ones in a row. Pure."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.lifecycle import Probe
from glasslet.probes.kinds import ProbeKind


class ProbeTally(Struct, frozen=True, kw_only=True):
    """The last result and how often it came in a row. It belongs to the probe, not to the instance: as in the Go
    kubelet a run goes on when the container is restarted."""

    passed: bool | None = None
    run: int = 0
    on_hold: bool = False
    """No more probing before there is another instance."""

    def resumed(self) -> ProbeTally:
        """There is another instance."""
        return ProbeTally(passed=self.passed, run=self.run)


class Counted(Struct, frozen=True):
    """`state`: what the probe says from now on, None when that stays as it is."""

    tally: ProbeTally
    state: bool | None = None


def count(tally: ProbeTally, passed: bool, kind: ProbeKind, probe: Probe) -> Counted:
    """Takes in one result."""
    run = tally.run + 1 if tally.passed is passed else 1
    if run < threshold(probe, passed=passed):
        return Counted(ProbeTally(passed=passed, run=run))
    if kind is ProbeKind.STARTUP or (kind is ProbeKind.LIVENESS and not passed):
        return Counted(ProbeTally(passed=passed, run=0, on_hold=True), passed)
    return Counted(ProbeTally(passed=passed, run=run), passed)


def threshold(probe: Probe, *, passed: bool) -> int:
    """The number of equal results in a row that counts; the API's default where it is not set."""
    return (probe.success_threshold or 1) if passed else (probe.failure_threshold or 3)
