"""The state of a probe from its results."""

from __future__ import annotations

from glasslet.api.lifecycle import Probe
from glasslet.probes.kinds import ProbeKind
from glasslet.probes.tally import ProbeTally, count

PROBE = Probe(success_threshold=2, failure_threshold=3)
READINESS, LIVENESS, STARTUP = ProbeKind.READINESS, ProbeKind.LIVENESS, ProbeKind.STARTUP


def states(results: str, kind: ProbeKind = READINESS, probe: Probe = PROBE) -> str:
    """The state after each result: `+` and `-` where it was set, `.` where it stayed."""
    tally, found = ProbeTally(), ""
    for result in results:
        counted = count(tally, result == "+", kind, probe)
        tally = counted.tally
        found += "." if counted.state is None else "+" if counted.state else "-"
    return found


def test_a_state_changes_only_after_so_many_equal_results_in_a_row() -> None:
    # behaviours.md §10: "A result changes state only after the threshold of equal results in a row."
    assert states("--+---++-++") == ".....-.+..+"


def test_thresholds_that_are_not_set_are_one_success_and_three_failures() -> None:
    # behaviours.md §10: "success 1, failure 3"
    assert states("--+---", probe=Probe()) == "..+..-"


def test_a_failed_liveness_holds_the_probe_until_there_is_another_instance() -> None:
    # behaviours.md §10: "Liveness or startup failure puts the worker on hold until a new container id appears."
    tally = ProbeTally()
    for _ in range(3):
        counted = count(tally, False, LIVENESS, PROBE)
        tally = counted.tally
    assert (counted.state, tally.on_hold) == (False, True)
    assert not tally.resumed().on_hold


def test_a_liveness_that_passes_holds_nothing() -> None:
    assert not count(ProbeTally(passed=True, run=1), True, LIVENESS, PROBE).tally.on_hold


def test_startup_rests_after_either_result() -> None:
    # behaviours.md §10: "the startup worker rests after either result until the container id changes"
    once = Probe(failure_threshold=1)
    for passed in (True, False):
        assert count(ProbeTally(), passed, STARTUP, once).tally.on_hold


def test_readiness_never_rests() -> None:
    assert not count(ProbeTally(passed=False, run=2), False, READINESS, PROBE).tally.on_hold


def test_after_a_hold_failures_are_counted_from_the_beginning() -> None:
    tally = count(ProbeTally(passed=False, run=2), False, LIVENESS, PROBE).tally.resumed()
    assert count(tally, False, LIVENESS, PROBE).state is None


def test_a_run_goes_on_over_a_restart_of_the_container() -> None:
    """As in the Go kubelet: the count belongs to the probe, not to the instance."""
    assert count(ProbeTally(passed=False, run=2).resumed(), False, READINESS, PROBE).state is False
