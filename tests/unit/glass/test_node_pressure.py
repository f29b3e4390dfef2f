"""Pressure as evidence of `why node`, and as the text of `evict --dry-run`."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.answers.eviction import CandidateAnswer, EvictionAnswer, OverLimit, SignalAnswer, ThresholdAnswer
from glasslet.cli.evict_command import eviction_text
from glasslet.glass.node_pressure import pressure_evidence

GIB = 2**30
MEMORY = SignalAnswer(
    signal="memory.available",
    unit="bytes",
    available=5 * GIB,
    capacity=8 * GIB,
    how="5 GiB = capacity 8 GiB - working set 3 GiB",
    source="memory.stat",
    age_seconds=3.0,
    trend="steady",
    thresholds=(ThresholdAnswer(kind="hard", amount="100Mi", line=1, wanted=1, text="hard, below 100Mi"),),
)
ANSWER = EvictionAnswer(
    sentence="No pod would be evicted now.",
    signal="memory.available",
    signals=(MEMORY, replace(MEMORY, signal="containerfs.available")),
    order=(
        CandidateAnswer(pod="shop/system", usage=GIB, request=0, priority=2_000_000_000, stays="never"),
        CandidateAnswer(pod="shop/hog", usage=GIB, request=2**20, priority=0, words="uses much"),
        CandidateAnswer(pod="shop/new", usage=None, request=0, priority=5, behind="priority 5 above 0", words="w"),
    ),
    over_limits=(OverLimit(pod="shop/large", message="Usage of EmptyDir volume exceeds."),),
    blind=("imagefs.available",),
)


def test_evidence_has_each_signal_then_the_next_pods_then_the_sentence() -> None:
    found = [(one.label, one.text) for one in pressure_evidence(ANSWER)]
    assert found == [
        (
            "memory.available",
            "5 GiB = capacity 8 GiB - working set 3 GiB\nhard, below 100Mi\nsteady; from memory.stat, 3 s old",
        ),
        ("imagefs.available", "no figures, so its threshold is not checked"),
        ("first for memory.available", "shop/hog: uses much"),
        ("second for memory.available", "shop/new: w"),
        ("eviction", "No pod would be evicted now."),
    ]


def test_a_node_that_cannot_be_read_says_so() -> None:
    (only,) = pressure_evidence(EvictionAnswer(problem="no figures"))
    assert (only.label, only.text) == ("pressure", "no figures")


def test_the_command_shows_all_pods_and_numbers_those_that_may_go() -> None:
    text = eviction_text(ANSWER)
    assert "shop/large would be evicted now: Usage of EmptyDir volume exceeds." in text
    rows = [line.split()[:2] for line in text.splitlines() if "shop/" in line and "would" not in line]
    assert rows == [["-", "shop/system"], ["2", "shop/hog"], ["3", "shop/new"]]
