"""Spans have their parents, and without an exporter there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import pytest

from glasslet.record.recorder import working_for
from glasslet.record.stations import Station
from glasslet.record.store import Record
from glasslet.telemetry.tracing.spans import Traced, begin, install, metadata, span
from tests.builders.record import WEB


class OneSpan:
    def __init__(self, name: str, parent: Traced | None, attributes: Mapping[str, str]) -> None:
        self.name = name
        self.parent = parent
        self.attributes = attributes
        self.traceparent = f"00-{name}"
        self.error: str | None = None

    def end(self, error: str) -> None:
        self.error = error


class Exporter:
    def __init__(self) -> None:
        self.spans: list[OneSpan] = []

    def start(self, name: str, parent: Traced | None, attributes: Mapping[str, str], *, client: bool) -> OneSpan:
        self.spans.append(OneSpan(name, parent, attributes))
        return self.spans[-1]


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    exporter = Exporter()
    install(exporter)
    yield exporter
    install(None)


def test_without_an_exporter_there_is_no_span_and_no_metadata() -> None:
    assert begin("sandbox", pod=WEB) is None
    with span("sandbox", pod=WEB):
        assert metadata() is None


def test_a_station_is_a_span_with_its_pod(exporter: Exporter) -> None:
    with working_for(WEB), Record().station(Station.SANDBOX):
        assert metadata() == (("traceparent", "00-sandbox"),)
    (found,) = exporter.spans
    assert found.error == ""
    assert found.attributes["k8s.pod.name"] == WEB.name
    assert metadata() is None


def test_a_station_that_fails_names_the_error(exporter: Exporter) -> None:
    with pytest.raises(TimeoutError), Record().station(Station.SANDBOX):
        raise TimeoutError
    assert exporter.spans[0].error == "TimeoutError"


async def test_a_task_that_is_started_inside_has_the_span_as_its_parent(exporter: Exporter) -> None:
    async def inner() -> None:
        with span("inner"):
            await asyncio.sleep(0)

    with span("outer"):
        await asyncio.create_task(inner())
    outer, found = exporter.spans
    assert found.parent is outer
