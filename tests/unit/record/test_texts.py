"""Texts that enter the record: bounded, valid Unicode, and never an error for the component that records."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from glasslet.record.disk import Line, packed, unpacked
from glasslet.record.events import NAME_LIMIT, TEXT_LIMIT
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station, WaitKind
from glasslet.record.store import Record
from tests.builders.record import WEB, ManualClock, kept

LONG = "x" * 100_000
UNDECODABLE = "/manifests/\udcff.yaml"
"""A file name with a byte that is not UTF-8, as the operating system's functions return it."""


def waits(record: Record, text: str) -> None:
    with record.wait(WaitKind.VOLUME, on=text):
        pass


def waits_in_container(record: Record, text: str) -> None:
    with record.wait(WaitKind.VOLUME, on="a", container=text):
        pass


def fails_at_station(record: Record, text: str) -> None:
    with pytest.raises(TimeoutError), record.station(Station.VOLUMES, container=text, detail=text):
        raise TimeoutError(text)


WRITERS: list[Callable[[Record, str], None]] = [
    waits,
    waits_in_container,
    fails_at_station,
    lambda record, text: record.passed(Station.SEEN, container=text, detail=text),
    lambda record, text: record.decided(text, container=text, first=text, second=[text]),
    lambda record, text: record.observed(text, text, text, container=text),
    lambda record, text: record.finding(text),
]


def texts(value: object) -> list[str]:
    """Every text inside an event."""
    plain = msgspec.to_builtins(value)
    parts: list[object] = [plain]
    found: list[str] = []
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, list | tuple):
            parts += part
    return found


@pytest.fixture
def record() -> Record:
    return Record(clock=ManualClock())


@pytest.mark.parametrize("write", WRITERS)
def test_every_text_of_an_event_is_cut(record: Record, write: Callable[[Record, str], None]) -> None:
    with working_for(WEB):
        write(record, LONG)
    assert max(len(text) for event in kept(record).events for text in texts(event)) <= TEXT_LIMIT


def test_texts_of_a_live_wait_are_cut(record: Record) -> None:
    with working_for(WEB, container=LONG), record.wait(WaitKind.VOLUME, on=LONG):
        (wait,) = record.live_waits()
    assert (len(wait.on), len(wait.container)) == (TEXT_LIMIT, NAME_LIMIT)


def test_the_log_of_a_finding_is_cut(record: Record, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        record.finding(LONG, pod=WEB)
        record.withdrawn(LONG, pod=WEB)
    assert [len(vars(line)["finding"]) for line in caplog.records] == [TEXT_LIMIT, TEXT_LIMIT]
    assert kept(record).findings() == ()


@pytest.mark.parametrize("write", WRITERS)
def test_a_text_with_undecodable_bytes_can_be_written_to_disk(
    record: Record, write: Callable[[Record, str], None], tmp_path: Path
) -> None:
    with working_for(WEB):
        write(record, UNDECODABLE)
    (batch,) = record.take_unwritten()
    line = Line(run="1", events=tuple(batch.events))
    assert unpacked(packed(line)) == line
    assert any("\\udcff.yaml" in text for event in batch.events for text in texts(event))


class Unprintable:
    """A value whose text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("value", [10**5000, Unprintable()], ids=["a number of 5001 digits", "an error"])
def test_an_input_without_a_text_is_no_error_for_the_component_that_decides(record: Record, value: object) -> None:
    record.decided("start", grace=value)
    (event,) = kept(record, None).events
    assert any("without text" in text for text in texts(event))
