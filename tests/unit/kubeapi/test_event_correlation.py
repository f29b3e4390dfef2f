"""Repeated, similar and flooding events."""

from __future__ import annotations

from glasslet.kubeapi.event_correlation import COMBINED, EventCorrelator, Happening


def happening(message: str = "m", reason: str = "BackOff", name: str = "web") -> Happening:
    return Happening(subject=("Pod", name), type="Warning", reason=reason, message=message)


def test_equal_event_is_counted_up() -> None:
    # events: "a repeated equal event only raises count"
    correlator = EventCorrelator()
    counts = [t.count for t in (correlator.correlate(happening(), 0.0) for _ in range(3)) if t]
    assert counts == [1, 2, 3]


def test_tenth_differing_text_of_one_reason_is_combined() -> None:
    # events: "from the 10th event of one object, type and reason with differing texts within 10 min on, one event
    # `(combined from similar events): <text>`"
    correlator = EventCorrelator()
    told = [correlator.correlate(happening(f"m{i}"), 0.0) for i in range(11)]
    assert [t.combined for t in told if t] == [False] * 9 + [True, True]
    last = told[-1]
    assert last is not None
    assert (last.message, last.count) == (f"{COMBINED}m10", 2)


def test_similar_events_far_apart_are_not_combined() -> None:
    correlator = EventCorrelator()
    told = [correlator.correlate(happening(f"m{i}"), i * 601.0) for i in range(11)]
    assert not any(t.combined for t in told if t)


def test_flood_of_one_object_is_cut_after_25() -> None:
    # events: "spam filter burst 25, then one per 5 min, per source, object and type"
    correlator = EventCorrelator()
    told = [correlator.correlate(happening(), 0.0) for _ in range(30)]
    assert sum(t is not None for t in told) == 25
    assert correlator.correlate(happening(), 301.0) is not None


def test_flood_of_one_object_does_not_silence_another() -> None:
    correlator = EventCorrelator()
    for _ in range(30):
        correlator.correlate(happening(), 0.0)
    assert correlator.correlate(happening(name="other"), 0.0) is not None
