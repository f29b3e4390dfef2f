"""Calls and traces for other tools: the trace event format, which Perfetto and Chrome open, and OpenTelemetry's OTLP in
JSON."""

from __future__ import annotations

import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from glasslet.answers.calls import Call, CallsAnswer
from glasslet.answers.trace import TraceAnswer
from glasslet.cli.failure import Failure
from glasslet.version import VERSION

Plain = dict[str, object]
_COLLECTOR_SECONDS = 30.0
_TRACES = "/v1/traces"


def as_perfetto(answer: CallsAnswer) -> Plain:
    """Complete events. Calls at the same moment that are not inside each other stand on tracks of their own."""
    start = answer.start.timestamp() * 1e6 if answer.start is not None else 0.0
    tracks = lanes(answer.calls)
    events: list[Plain] = [
        {
            "name": call.function,
            "cat": call.file,
            "ph": "X",
            "ts": start + call.start_ms * 1000,
            "dur": max(0.001, (_end(call, answer) - call.start_ms) * 1000),
            "pid": 1,
            "tid": track + 1,
            "args": _facts(call),
        }
        for call, track in zip(answer.calls, tracks, strict=True)
    ]
    title = f"calls for {answer.namespace}/{answer.name}" if answer.name else "start of the agent"
    events.append({"name": "process_name", "ph": "M", "pid": 1, "args": {"name": f"glasslet: {title}"}})
    return {"displayTimeUnit": "ms", "traceEvents": events}


def trace_as_perfetto(answer: TraceAnswer) -> Plain:
    """A track for each row of the waterfall, and below it one or more for its waits: waits may overlap."""
    zero = answer.start.timestamp() * 1e6
    events: list[Plain] = []
    tracks: list[str] = []

    def add(track: int, name: str, start_ms: float, end_ms: float, facts: Mapping[str, object]) -> None:
        times = {"ts": zero + start_ms * 1000, "dur": max(0.001, (end_ms - start_ms) * 1000)}
        args = {key: value for key, value in facts.items() if value}
        events.append({"name": name, "ph": "X", **times, "pid": 1, "tid": track, "args": args})

    for row in answer.rows:
        title = f"{row.container}  {row.name}" if row.container else row.name
        tracks.append(title)
        for span in row.spans:
            add(len(tracks), row.name, span.start_ms, span.end_ms, {"detail": row.detail, "outcome": row.outcome})
        free_at: list[float] = []
        for wait in sorted(row.waits, key=lambda wait: wait.start_ms):
            lane = next((lane for lane, free in enumerate(free_at) if free <= wait.start_ms), len(free_at))
            free_at[lane : lane + 1] = [wait.end_ms]
            facts = {"kind": wait.kind, "outcome": wait.outcome, "party": wait.who}
            add(len(tracks) + 1 + lane, wait.on, wait.start_ms, wait.end_ms, facts)
        tracks.extend([f"{title}: waits"] * len(free_at))
    named = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": {"name": name}}
        for number, name in enumerate(tracks, 1)
    ]
    pod = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": f"{answer.namespace}/{answer.name}"}}
    return {"displayTimeUnit": "ms", "traceEvents": [pod, *named, *events]}


def lanes(calls: Sequence[Call]) -> list[int]:
    """A lane for each call: that of its caller if nothing else of the caller runs there at the time, else another."""
    chosen: list[int] = []
    busy_until: dict[tuple[int, int], float] = {}
    free_at: list[float] = []
    for call in calls:
        home = chosen[call.parent] if call.parent >= 0 else 0
        end = call.end_ms if call.end_ms is not None else float("inf")
        outer = calls[call.parent] if call.parent >= 0 else None
        inside = outer is not None and (outer.end_ms is None or end <= outer.end_ms)
        if inside and busy_until.get((call.parent, home), 0.0) <= call.start_ms:
            lane = home
        else:
            lane = next((n for n, free in enumerate(free_at) if free <= call.start_ms), len(free_at))
        if lane == len(free_at):
            free_at.append(0.0)
        busy_until[call.parent, lane] = end
        free_at[lane] = max(free_at[lane], end)
        chosen.append(lane)
    return chosen


def as_otlp(answer: CallsAnswer) -> Plain:
    """An ExportTraceServiceRequest: one trace, a span for each call."""
    start = round(answer.start.timestamp() * 1e9) if answer.start is not None else 0
    trace = hashlib.sha256(f"{answer.namespace}/{answer.name} {start}".encode()).hexdigest()[:32]
    spans = [
        {
            "traceId": trace,
            "spanId": f"{number + 1:016x}",
            **({"parentSpanId": f"{call.parent + 1:016x}"} if call.parent >= 0 else {}),
            "name": call.function,
            "kind": 1,
            "startTimeUnixNano": str(start + round(call.start_ms * 1e6)),
            "endTimeUnixNano": str(start + round(_end(call, answer) * 1e6)),
            "attributes": [_attribute(name, value) for name, value in _facts(call).items()],
            "status": {"code": 2, "message": call.outcome} if call.outcome else {},
        }
        for number, call in enumerate(answer.calls)
    ]
    names = {"service.name": "kubelet", "service.version": VERSION}
    if answer.name:
        names |= {"k8s.namespace.name": answer.namespace, "k8s.pod.name": answer.name}
    resource = {"attributes": [_attribute(name, value) for name, value in names.items()]}
    scope = {"name": "glasslet.calls", "version": VERSION}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def send(content: Plain, where: str) -> None:
    """Writes to a file, or posts to a collector (`http://HOST:4318`, with or without its path). Raises Failure."""
    body = json.dumps(content, ensure_ascii=False).encode()
    if not where.startswith(("http://", "https://")):
        try:
            Path(where).write_bytes(body)
        except OSError as error:
            raise Failure(f"{where}: {error.strerror or error}") from error
        return
    url = where if where.endswith(_TRACES) else where.rstrip("/") + _TRACES
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_COLLECTOR_SECONDS) as response:  # noqa: S310
            response.read()
    except (OSError, ValueError) as error:
        raise Failure(f"the collector at {url} did not take the spans: {error}") from error


def _end(call: Call, answer: CallsAnswer) -> float:
    if call.end_ms is not None:
        return call.end_ms
    if answer.start is not None and answer.end is not None:
        return max(call.start_ms, (answer.end - answer.start).total_seconds() * 1000)
    return max(call.start_ms, max((other.end_ms or other.start_ms for other in answer.calls), default=0.0))


def _facts(call: Call) -> dict[str, object]:
    facts: dict[str, object] = {
        "code.function.name": call.function,
        "code.file.path": call.file,
        "code.line.number": call.line,
        "cpu_ms": call.cpu_ms,
        "awaited_ms": call.waited_ms,
        "awaited_on": call.waited_on,
        "arguments": call.arguments,
        "result": call.result,
        "outcome": call.outcome,
        "repeated": call.repeated if call.repeated > 1 else "",
        "over": "" if call.end_ms is not None else "no",
    }
    return {name: value for name, value in facts.items() if value not in ("", None)}


def _attribute(name: str, value: object) -> Plain:
    if isinstance(value, int):
        return {"key": name, "value": {"intValue": str(value)}}
    if isinstance(value, float):
        return {"key": name, "value": {"doubleValue": value}}
    return {"key": name, "value": {"stringValue": str(value)}}
