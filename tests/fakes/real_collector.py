"""The published OpenTelemetry collector as a process, which passes on what it receives as lines of JSON.

Its program is built once by `tests/go/collector/build`; without Go and without a built one, tests skip and say so, with
CI=true in the environment they fail instead.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.agent import free_port

SOURCES = Path(__file__).resolve().parents[1] / "go" / "collector"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glasslet"
_READY = "Everything is ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """One span as the collector has it. `parent`: "" for the root of its trace; `service`: who sent it."""

    name: str
    span_id: str
    parent: str
    trace_id: str
    service: str
    attributes: Mapping[str, object]


def collector_program() -> Path:
    """Where the program of these sources is, once it is built."""
    parts = sorted(path for path in SOURCES.iterdir() if path.is_file())
    sources = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in parts)).hexdigest()
    return _CACHE / f"collector-{sources[:12]}"


def missing_collector_requirement() -> str | None:
    """What this machine lacks to run it, in words; None when nothing does."""
    if not collector_program().exists() and shutil.which("go") is None:
        return f"{collector_program()} is not built and Go is not installed ({SOURCES / 'build'} makes it)"
    return None


def build() -> Path:
    """Makes the program where it is not there yet."""
    program = collector_program()
    if not program.exists():
        subprocess.run([str(SOURCES / "build"), str(program)], check=True, stdout=subprocess.DEVNULL)
    return program


class RealCollector:
    """A running one. `grpc_port` and `http_port`: where it takes OTLP."""

    def __init__(self, folder: Path) -> None:
        self.grpc_port, self.http_port = free_port(), free_port()
        self._log = folder / "collector.log"
        self._spans: list[ReceivedSpan] = []
        self._news = threading.Condition()
        configuration = folder / "collector.json"
        configuration.write_text(json.dumps(self._configuration()))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(build()), "--config", f"file:{configuration}"], stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._reader = threading.Thread(target=self._read, name="spans of the collector", daemon=True)
        self._reader.start()

    def _configuration(self) -> dict[str, Any]:
        protocols = {
            "grpc": {"endpoint": f"127.0.0.1:{self.grpc_port}"},
            "http": {"endpoint": f"127.0.0.1:{self.http_port}"},
        }
        return {
            "receivers": {"otlp": {"protocols": protocols}},
            "exporters": {"lines": {}},
            "service": {
                "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["lines"]}},
                "telemetry": {"metrics": {"level": "none"}},
            },
        }

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        """Until it takes spans."""
        end = time.monotonic() + seconds
        while _READY not in self._log.read_text():
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < end, self._log.read_text()[-2000:]
            time.sleep(0.05)

    def wait_for(self, found: Callable[[Sequence[ReceivedSpan]], bool], seconds: float = 60.0) -> list[ReceivedSpan]:
        """The spans once they are as wanted."""
        end = time.monotonic() + seconds
        with self._news:
            while not found(self._spans):
                names = sorted({f"{span.service}: {span.name}" for span in self._spans})
                assert self._news.wait(max(0.0, end - time.monotonic())), names
            return list(self._spans)

    def stop(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait(30)
        self._reader.join(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            spans = list(_spans(json.loads(line)))
            with self._news:
                self._spans += spans
                self._news.notify_all()


def _spans(batch: dict[str, Any]) -> Iterator[ReceivedSpan]:
    for resource in batch["resourceSpans"]:
        service = _plain(resource["resource"].get("attributes", []))
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                yield ReceivedSpan(
                    name=span["name"],
                    span_id=span["spanId"],
                    parent=span.get("parentSpanId", ""),
                    trace_id=span["traceId"],
                    service=str(service.get("service.name", "")),
                    attributes=_plain(span.get("attributes", [])),
                )


def ancestors(spans: Sequence[ReceivedSpan], span: ReceivedSpan) -> list[ReceivedSpan]:
    """Its parent, the parent's parent, and so on. Fails if one of them did not arrive."""
    by_id = {(one.trace_id, one.span_id): one for one in spans}
    found = []
    while span.parent:
        span = by_id[span.trace_id, span.parent]
        found.append(span)
    return found


def _plain(attributes: list[dict[str, Any]]) -> dict[str, object]:
    return {one["key"]: next(iter(one["value"].values()), None) for one in attributes}


@pytest.fixture
def real_collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCollector]:
    """One that takes spans."""
    if (missing := missing_collector_requirement()) is not None:
        pytest.skip(f"NOT TESTED WITH A REAL COLLECTOR: {missing}")
    collector = RealCollector(tmp_path_factory.mktemp("collector"))
    try:
        collector.wait_until_ready()
        yield collector
    finally:
        collector.stop()
