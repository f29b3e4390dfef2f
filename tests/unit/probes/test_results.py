"""Outcomes of probes, and the results that are kept."""

from __future__ import annotations

from datetime import UTC, datetime

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.exchange.facts import ProbeOutcome
from glasslet.probes.kinds import ProbeKind
from glasslet.probes.results import ProbeResult, ProbeResults, ProbeVerdict

REF = PodRef("default", "web", PodUID("1"))
ONE, TWO = ContainerID("one"), ContainerID("two")
ALL = tuple(ProbeKind)
NEW = ProbeOutcome()


def result(number: int, kind: ProbeKind = ProbeKind.READINESS) -> ProbeResult:
    return ProbeResult(
        kind=kind,
        container="main",
        instance=ONE,
        began=datetime(2026, 1, 1, tzinfo=UTC),
        verdict=ProbeVerdict.SUCCESS,
        note=str(number),
    )


def test_start_values_are_unready_alive_and_not_known_to_have_started() -> None:
    # behaviours.md §10: "Start values: readiness failure, liveness success, startup unknown."
    results = ProbeResults()
    results.begin(REF, ONE, ALL, NEW)
    assert results.outcomes(REF) == {ONE: ProbeOutcome(ready=False, alive=True, started=None)}


def test_kinds_that_a_container_does_not_have_say_nothing() -> None:
    results = ProbeResults()
    results.begin(REF, ONE, (ProbeKind.LIVENESS,), NEW)
    assert results.outcomes(REF)[ONE] == ProbeOutcome(alive=True)


def test_what_was_known_before_replaces_the_start_value() -> None:
    results = ProbeResults()
    results.begin(REF, ONE, ALL, ProbeOutcome(ready=True, started=True))
    assert results.outcomes(REF)[ONE] == ProbeOutcome(ready=True, alive=True, started=True)


def test_setting_a_state_tells_whether_it_is_news() -> None:
    results = ProbeResults()
    results.begin(REF, ONE, ALL, NEW)
    assert results.set(REF, ONE, ProbeKind.READINESS, True)
    assert not results.set(REF, ONE, ProbeKind.READINESS, True)
    assert results.outcomes(REF)[ONE].ready is True


def test_a_result_that_comes_after_its_instance_is_dropped() -> None:
    results = ProbeResults()
    results.begin(REF, ONE, ALL, NEW)
    results.begin(REF, TWO, ALL, NEW)
    results.keep_only(REF, {TWO})
    assert not results.set(REF, ONE, ProbeKind.READINESS, True)
    assert set(results.outcomes(REF)) == {TWO}


def test_the_last_results_of_each_probe_are_kept() -> None:
    results = ProbeResults(kept=3)
    for number in range(10):
        results.add(REF, result(number))
    results.add(REF, result(99, ProbeKind.LIVENESS))
    assert [one.note for one in results.last(REF)] == ["7", "8", "9", "99"]


def test_a_forgotten_pod_leaves_nothing() -> None:
    results = ProbeResults()
    results.begin(REF, ONE, ALL, ProbeOutcome(ready=True))
    results.add(REF, result(1))
    results.forget(REF.uid)
    assert not results.outcomes(REF)
    assert not results.last(REF)
    assert not results.passing()


def test_only_what_passes_is_worth_remembering() -> None:
    results = ProbeResults()
    results.begin(REF, ONE, ALL, NEW)
    results.begin(REF, TWO, ALL, ProbeOutcome(started=True))
    assert set(results.passing()) == {TWO}
