"""The short lane: a second for each decoder of outside bytes, the same inputs every time, and all former findings."""

from __future__ import annotations

import logging

import pytest

from tests.fuzz.engine import FOUND, Tally, Target, bounded, run_batch, run_for
from tests.fuzz.targets import all_targets

TARGETS = all_targets()
MOST_INPUTS = 3000
MOST_SECONDS = 1.0


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_good_inputs_are_taken(target: Target) -> None:
    for seed in target.seeds:
        target.run(seed)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_damaged_inputs_give_a_value_or_the_decoders_own_error(target: Target) -> None:
    tally = Tally()
    run_for(target, seconds=MOST_SECONDS, inputs=MOST_INPUTS, tally=tally)
    assert [str(finding) for finding in tally.findings] == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_was_found_once_stays_mended(target: Target) -> None:
    kept = [path.read_bytes() for path in sorted((FOUND / target.name.replace(" ", "-").replace("/", "-")).glob("*"))]
    tally = Tally()
    with bounded():
        run_batch(target, 0, kept, tally)
    assert [str(finding) for finding in tally.findings] == []
