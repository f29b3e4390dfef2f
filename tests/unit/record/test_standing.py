"""A finding that stands as long as its cause."""

from __future__ import annotations

from glasslet.record.standing import StandingFinding, StandingFindings
from glasslet.record.store import Record
from tests.builders.record import WEB, kept


def test_a_finding_holds_until_its_cause_ends() -> None:
    record = Record()
    trouble = StandingFinding(record)
    trouble.is_("no connection")
    assert record.findings() == ["no connection"]
    trouble.over()
    assert record.findings() == []


def test_a_new_text_takes_the_place_of_the_old_one() -> None:
    record = Record()
    trouble = StandingFinding(record)
    trouble.is_("no connection")
    trouble.is_("refused")
    assert record.findings() == ["refused"]


def test_a_cause_that_comes_back_is_reported_again() -> None:
    record = Record()
    trouble = StandingFinding(record, pod=WEB)
    for _ in range(2):
        trouble.is_("no connection")
        trouble.is_("no connection")
        trouble.over()
        trouble.over()
    known = record.of(WEB)
    assert known is not None
    assert known.findings() == ()
    assert len(known.events) == 4


def test_causes_of_one_kind_come_and_go_apart() -> None:
    record = Record()
    troubles: StandingFindings[str] = StandingFindings(record)
    troubles.is_("a", "a is wrong")
    troubles.is_("b", "b is wrong")
    troubles.over("a")
    troubles.over("c")
    assert record.findings() == ["b is wrong"]


def test_findings_that_hold_are_known_when_their_events_were_dropped() -> None:
    record = Record()
    for number in range(200):
        record.finding(f"manifest {number} is bad", pod=WEB)
    for number in range(1, 200):
        record.withdrawn(f"manifest {number} is bad", pod=WEB)
    assert kept(record).dropped > 0
    assert kept(record).findings() == ("manifest 0 is bad",)


def test_beyond_the_bound_only_the_oldest_findings_are_forgotten() -> None:
    record = Record()
    for number in range(300):
        record.finding(f"manifest {number:03} is bad")
    assert record.findings() == [f"manifest {number:03} is bad" for number in range(44, 300)]
