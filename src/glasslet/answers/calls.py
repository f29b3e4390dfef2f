"""The requests and answers about calls: what the agent's own code did for one pod, or during its start.

    POST /glass/v1/pods/NAMESPACE/NAME/calls     CallsRequest -> CallsAnswer, at once: tracing has begun
    GET  /glass/v1/pods/NAMESPACE/NAME/calls     CallsAnswer: what was traced so far, or last
    GET  /glass/v1/agent/calls                   CallsAnswer: the agent's start
    GET  /glass/v1/source?file=FILE              SourceAnswer: one of the agent's own files

A refused request is answered with ErrorAnswer.
"""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.wire import WireMessage


class CallsRequest(WireMessage, frozen=True, kw_only=True):
    """How long to trace: `seconds` at most, or `until` the pod is "Ready", or until it leaves the next station of its
    way ("step"); "" for the time alone."""

    seconds: float = 30.0
    until: str = ""


class Call(WireMessage, frozen=True, kw_only=True):
    """One call. Milliseconds from the answer's `start`; `cpu_ms` is the call's own thread of control, `waited_ms` what
    it awaited, on `waited_on` for the most part. `parent`: the index of its caller, -1 for a root. `outcome`: "" or the
    exception's class. `end_ms` None: not over yet."""

    parent: int
    function: str
    file: str
    line: int
    start_ms: float
    end_ms: float | None
    cpu_ms: float = 0.0
    waited_ms: float = 0.0
    waited_on: str = ""
    arguments: str = ""
    result: str = ""
    outcome: str = ""
    repeated: int = 1


class CallsAnswer(WireMessage, frozen=True, kw_only=True):
    """The calls in the order of their starts. `left_out`: calls beyond the limit. `active`: tracing goes on."""

    namespace: str = ""
    name: str = ""
    start: datetime | None = None
    end: datetime | None = None
    active: bool = False
    calls: tuple[Call, ...] = ()
    left_out: int = 0


class SourceAnswer(WireMessage, frozen=True, kw_only=True):
    """One source file as this agent runs it."""

    file: str
    text: str
