"""A pull as a row and in words."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from glasslet.glass.pod_rows import pod_row
from glasslet.glass.pulls import layer_words, pull_row, pull_words
from glasslet.glass.verdicts.pod_rules import pod_verdict
from glasslet.runtime.images.progress import LayerRate, PullRate
from glasslet.runtime.images.progress_watch import PullView
from tests.builders.record import record, standing
from tests.builders.verdicts import NOW, STARTED, situation, status

MIB = 1 << 20
LAYERS = (
    LayerRate(digest="sha256:a", done=5 * MIB, total=5 * MIB),
    LayerRate(digest="sha256:b", done=7 * MIB, total=70 * MIB, rate=2.0 * MIB, open=True),
    LayerRate(digest="sha256:c", done=0, total=5 * MIB),
)
HALF = PullView(image="app:1", progress=PullRate(done=12 * MIB, total=80 * MIB, rate=2.0 * MIB, layers=LAYERS))


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (HALF, "12 MiB of 80 MiB, 2 MiB/s"),
        (PullView(image="app:1", queued_behind=1), "queued behind 1 pull"),
        (PullView(image="app:1", queued_behind=3), "queued behind 3 pulls"),
        (PullView(image="app:1", unreported=True), "the runtime does not report bytes"),
        (PullView(image="app:1"), ""),
    ],
)
def test_a_pull_in_words(view: PullView, words: str) -> None:
    assert pull_words(view) == words


def test_the_layers_in_words() -> None:
    assert layer_words(HALF) == "1 of 3 there, 1 coming in, 1 not begun"
    assert layer_words(PullView(image="app:1")) == ""


def test_a_row_has_the_bytes_of_the_pull_and_of_each_layer() -> None:
    row = pull_row(HALF, NOW)
    assert (row.done, row.total, row.bytes_per_second, row.stalled_since) == (12 * MIB, 80 * MIB, 2.0 * MIB, None)
    assert [(layer.done, layer.open) for layer in row.layers] == [(5 * MIB, False), (7 * MIB, True), (0, False)]


def test_a_row_says_since_when_a_pull_stalls() -> None:
    assert HALF.progress is not None
    stalled = PullView(image="app:1", progress=replace(HALF.progress, stalled=90.0))
    assert pull_row(stalled, NOW).stalled_since == NOW - timedelta(seconds=90)


def test_why_and_ps_say_how_far_the_pull_is() -> None:
    stations = (standing("image", 88, "main"),)
    it = situation(now=status(phase="Pending"), record=record(*STARTED[:3], stations=stations), pulls={"main": HALF})
    verdict = pod_verdict(it)
    assert "which is being pulled: 12 MiB of 80 MiB, 2 MiB/s" in verdict.sentence
    assert verdict.brief.endswith(": 12 MiB of 80 MiB, 2 MiB/s")
    evidence = {item.label: item.text for item in verdict.evidence}
    assert evidence["layers"] == "1 of 3 there, 1 coming in, 1 not begun"
    assert pod_row(it, verdict).pull == pull_row(HALF, NOW)


def test_a_queued_pull_names_the_one_that_has_run_longest() -> None:
    queued = PullView(image="app:1", queued_behind=2, first="r.example/big:1", first_progress=HALF.progress)
    it = situation(
        now=status(phase="Pending"),
        record=record(*STARTED[:3], stations=(standing("image", 88, "main"),)),
        pulls={"main": queued},
    )
    verdict = pod_verdict(it)
    assert "queued behind 2 pulls, of which r.example/big:1 (12 MiB of 80 MiB, 2 MiB/s) has run" in verdict.sentence
    assert "maxParallelImagePulls" in verdict.next_step
