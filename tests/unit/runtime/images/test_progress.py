"""The arithmetic of a pull in bytes."""

from __future__ import annotations

import pytest

from glasslet.runtime.images.progress import (
    STALLED_AFTER,
    WINDOW,
    Ingest,
    Layer,
    PullRate,
    PullState,
    advanced,
    layer_of_ref,
    progress_of,
    progress_words,
    sampled,
)

MIB = 1 << 20
BIG, SMALL = Layer("sha256:big", 80 * MIB), Layer("sha256:small", 20 * MIB)


def state_of(*moments: tuple[float, int], whole: frozenset[str] = frozenset()) -> PullState:
    """The big layer with so many MiB at each moment."""
    state: PullState | None = None
    for at, done in moments:
        ingests = (Ingest(BIG.digest, done * MIB, BIG.size),) if BIG.digest not in whole else ()
        state = advanced(state, sampled(at=at, layers=(BIG, SMALL), present=whole, ingests=ingests))
    assert state is not None
    return state


def test_done_and_total_count_what_is_there_what_comes_and_what_waits() -> None:
    third = Layer("sha256:third", 100)
    ingests = (Ingest(BIG.digest, 30 * MIB, BIG.size),)
    sample = sampled(at=0, layers=(BIG, SMALL, third), present={SMALL.digest}, ingests=ingests)
    progress = progress_of(advanced(None, sample), now=0)
    assert (progress.done, progress.total) == (50 * MIB, 100 * MIB + 100)
    assert [(layer.done, layer.open) for layer in progress.layers] == [(30 * MIB, True), (20 * MIB, False), (0, False)]


def test_the_rate_is_the_mean_of_the_window() -> None:
    state = state_of((0, 0), (2, 4), (4, 8))
    assert progress_of(state, now=4).rate == 2 * MIB
    assert progress_of(state, now=4).layers[0].rate == 2 * MIB
    assert progress_of(state, now=4).layers[1].rate == 0


def test_what_came_before_the_window_does_not_count_for_the_rate() -> None:
    state = state_of((0, 0), (1, 40), (1 + WINDOW, 41), (3 + WINDOW, 42))
    assert progress_of(state, now=3 + WINDOW).rate == MIB / 2


def test_a_pull_stalls_when_no_byte_comes_while_a_download_is_open() -> None:
    state = state_of((0, 3), (2, 3), (STALLED_AFTER, 3))
    assert progress_of(state, now=STALLED_AFTER - 1).stalled is None
    assert progress_of(state, now=STALLED_AFTER).stalled == STALLED_AFTER
    assert progress_of(state_of((0, 3), (20, 4)), now=STALLED_AFTER).stalled is None


def test_bytes_that_come_again_end_the_stall() -> None:
    state = state_of((0, 3), (60, 3), (62, 4))
    assert progress_of(state, now=62).stalled is None


def test_a_pull_that_only_unpacks_does_not_stall() -> None:
    state = state_of((0, 80), whole=frozenset({BIG.digest, SMALL.digest}))
    progress = progress_of(state, now=500)
    assert progress.stalled is None
    assert progress.downloaded


def test_a_download_that_opens_late_has_its_time() -> None:
    waiting = advanced(None, sampled(at=0, layers=(BIG,), present=(), ingests=()))
    opened = advanced(waiting, sampled(at=100, layers=(BIG,), present=(), ingests=(Ingest(BIG.digest, 0, BIG.size),)))
    assert progress_of(opened, now=101).stalled is None


def test_a_layer_of_unknown_size_has_the_total_that_the_download_names() -> None:
    sample = sampled(at=0, layers=(Layer("sha256:x"),), present=(), ingests=(Ingest("sha256:x", 5, 9),))
    assert progress_of(advanced(None, sample), now=0).total == 9


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (PullRate(), ""),
        (PullRate(done=12 * MIB, total=80 * MIB, rate=3.1 * MIB), "12 MiB of 80 MiB, 3.1 MiB/s"),
        (PullRate(done=0, total=80 * MIB), "0 bytes of 80 MiB"),
        (PullRate(done=12 * MIB, total=80 * MIB, stalled=70), "12 MiB of 80 MiB, stalled for 1 min 10 s"),
        (PullRate(done=80 * MIB, total=80 * MIB), "80 MiB downloaded, being unpacked"),
    ],
)
def test_progress_in_words(progress: PullRate, words: str) -> None:
    assert progress_words(progress) == words


@pytest.mark.parametrize(
    ("ref", "digest"),
    [
        ("layer-sha256:0a", "sha256:0a"),
        ("config-sha256:0a", ""),
        ("manifest-sha256:0a", ""),
        ("layer-", ""),
        ("", ""),
        ("extract-1-layer", ""),
    ],
)
def test_only_downloads_of_layers_count(ref: str, digest: str) -> None:
    assert layer_of_ref(ref) == digest
