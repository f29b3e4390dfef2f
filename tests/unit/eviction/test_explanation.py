"""Eviction in words."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasslet.eviction.decision import PressureMemory
from glasslet.eviction.explanation import (
    Background,
    arithmetic,
    explain_order,
    explain_signals,
    trend_words,
)
from glasslet.eviction.ranking import EvictionCandidate, rank
from glasslet.eviction.reading import Reading
from glasslet.eviction.signals import Observation, Signal, observe
from glasslet.eviction.thresholds import Threshold
from glasslet.eviction.trends import Trends
from glasslet.stats.disks.storage import DiskLayout
from tests.builders.eviction import GIB, MIB, TAKEN, running, summary, wanting

HARD = Threshold(signal=Signal.MEMORY, amount="512Mi")
SOFT = Threshold(signal=Signal.MEMORY, amount="25%", grace=90.0, minimum_reclaim="1Gi")


def test_memory_is_explained_down_to_the_page_cache() -> None:
    seen = Observation(signal=Signal.MEMORY, available=5 * GIB, capacity=8 * GIB, usage=7 * GIB)
    assert arithmetic(seen) == (
        "5 GiB = capacity 8 GiB - working set 3 GiB; working set = use 7 GiB - page cache that counts as free 4 GiB"
    )


def test_inodes_and_process_ids_are_counted() -> None:
    seen = Observation(signal=Signal.NODEFS_INODES, available=900, capacity=1000)
    assert arithmetic(seen) == "900 inodes = capacity 1000 inodes - used 100 inodes"


@pytest.mark.parametrize(
    ("per_minute", "words"),
    [
        (None, "not known yet"),
        (1000.0, "steady"),
        (50.0 * MIB, "50 MiB more a minute"),
        (-100.0 * MIB, "100 MiB less a minute, at the threshold in 5 min if that goes on"),
    ],
)
def test_a_trend_says_when_the_next_threshold_is_met(per_minute: float | None, words: str) -> None:
    seen = Observation(signal=Signal.MEMORY, available=512 * MIB + 500 * MIB, capacity=8 * GIB)
    assert trend_words(seen, [HARD], per_minute) == words


def test_a_trend_is_known_after_20_s_and_looks_back_5_min_at_most() -> None:
    trends = Trends()
    for at in range(0, 1000, 5):
        trends.note(float(at), {Signal.PIDS: Observation(signal=Signal.PIDS, available=10_000 - at, capacity=20_000)})
        known = trends.per_minute(Signal.PIDS, now=float(at), available=10_000 - at)
        assert known == (None if at < 20 else pytest.approx(-60.0))
    assert trends.per_minute(Signal.MEMORY, now=1000.0, available=1) is None
    # What happened before the oldest point is forgotten.
    assert trends.per_minute(Signal.PIDS, now=995.0, available=10_000) == pytest.approx(700 / 295 * 60)


def test_thresholds_say_what_they_are_and_since_when_they_are_crossed() -> None:
    reading = Reading(taken=130.0, thresholds=(HARD, SOFT), observations=observe(summary(free=GIB)))
    background = Background(now=TAKEN + timedelta(seconds=7), memory=PressureMemory(crossed_since={SOFT: 100.0}))
    memory, pids = explain_signals(reading, background)
    assert [one.text for one in memory.thresholds] == [
        "hard, below 512Mi",
        "soft, below 25% (2 GiB) for 1 min 30 s, then until 3 GiB are there; crossed for 30 s",
    ]
    assert (memory.age_seconds, pids.signal, pids.thresholds) == (7.0, "pid.available", ())


def test_each_pod_says_what_put_it_behind_the_one_before() -> None:
    ranked = rank(
        [
            running(wanting("below", memory="100Mi"), memory=90 * MIB),
            running(wanting("system", priority=2_000_000_000), memory=700 * MIB),
            running(wanting("important", priority=1000), memory=500 * MIB),
            running(wanting("little", memory="100Mi"), memory=110 * MIB),
            running(wanting("much", memory="100Mi"), memory=190 * MIB),
            EvictionCandidate(pod=wanting("starting", priority=9)),
        ],
        Signal.MEMORY,
        DiskLayout(),
    )
    found = {one.pod.removeprefix("default/"): one.stays or one.behind for one in explain_order(ranked, Signal.MEMORY)}
    assert found == {
        "starting": "",
        "much": "its use is known",
        "little": "less above its request",
        "important": "priority 1000 above 0",
        "system": "static, mirror and critical pods are never evicted",
        "below": "within its request",
    }


@given(
    signal=st.sampled_from([Signal.MEMORY, Signal.NODEFS, Signal.NODEFS_INODES, Signal.PIDS]),
    pods=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=2, max_size=9
    ),
)
def test_every_place_has_a_reason_that_holds(signal: Signal, pods: list[tuple[int, int, int, bool]]) -> None:
    candidates = []
    for number, (use, request, priority, known) in enumerate(pods):
        owner = wanting(f"p{number}", memory=str(request or ""), storage=str(request or ""), priority=priority)
        use_of = running(owner, memory=use, layer=use, processes=use)
        candidates.append(use_of if known else EvictionCandidate(pod=owner))
    ranked = rank(candidates, signal, DiskLayout())
    told = list(explain_order(ranked, signal))
    for (before, one), (_, answer) in zip(pairwise(ranked), pairwise(told), strict=True):
        match answer.behind:
            case "its use is known":
                assert before.usage is None
            case "within its request":
                assert before.above_request
                assert not one.above_request
            case text if text.startswith("priority"):
                assert one.priority > before.priority
            case "fewer processes":
                assert (one.usage or 0) < (before.usage or 0)
            case text:
                assert text in (
                    "less above its request", "further below its request", "uses as much, by chance",
                    "as many processes, by chance",
                )  # fmt: skip
                assert one.priority == before.priority
