"""Requests under /glass: query and body as values. Every refusal is one `ErrorAnswer` with a fitting HTTP status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec

from glasslet.answers.requests import ExecRequest, LogRequest
from glasslet.answers.wire import ErrorAnswer
from glasslet.answers.words import nearest
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef


class RequestRefused(Exception):
    """A request that gets an error answer."""

    def __init__(self, status: int, answer: ErrorAnswer) -> None:
        super().__init__(answer.error)
        self.status = status
        self.answer = answer


class KnownClient(Protocol):
    """The client of a request, where the server knows it."""

    @property
    def name(self) -> str: ...
    async def verbs(self) -> tuple[str, ...]:
        """The verbs on `nodes/glass` that it holds."""


CLIENT: ContextVar[KnownClient | None] = ContextVar("glasslet_client", default=None)
"""The client of the present request; None: it came over the socket, from root. It is shown, and decides nothing."""
ALL_VERBS = ("get", "create")

PAGE_HEADER = "X-Glasslet"


def refuse_foreign_page(method: str, headers: Mapping[str, str]) -> None:
    """A browser sends its user's certificate with each request, and lets any page send some. Only a page of the same
    origin can set a header of its own: without it, a request of a browser changes nothing. Raises RequestRefused."""
    by_browser = "Origin" in headers or "Sec-Fetch-Site" in headers
    if method not in ("GET", "HEAD") and by_browser and headers.get(PAGE_HEADER) != "1":
        answer = ErrorAnswer(error="a request of a page needs this header", field=PAGE_HEADER, allowed="1")
        raise RequestRefused(403, answer)


def unknown_pod(name: str, known: Iterable[PodRef]) -> RequestRefused:
    """The refusal for a pod (`namespace/name`) that is neither on this node nor in the record."""
    answer = ErrorAnswer(
        error=f"no pod {name} on this node",
        field="pod",
        value=name,
        allowed="the name of a pod on this node, or of one that left a record",
        nearest=nearest(name, sorted({str(ref) for ref in known})),
    )
    return RequestRefused(404, answer)


def chosen_container(pod: Pod, requested: str) -> str:
    """The requested container, else the pod's default, else its first. Raises RequestRefused."""
    spec = pod.spec
    names = [c.name for c in (*spec.containers, *spec.init_containers)] + [c.name for c in spec.ephemeral_containers]
    chosen = requested or pod.metadata.annotations.get("kubectl.kubernetes.io/default-container") or names[0]
    if chosen not in names:
        answer = ErrorAnswer(
            error=f"pod {pod.metadata.namespace}/{pod.metadata.name} has no container {chosen}",
            field="container",
            value=chosen,
            allowed=", ".join(names),
            nearest=nearest(chosen, names),
        )
        raise RequestRefused(404, answer)
    return chosen


def log_request(query: Mapping[str, str], now: datetime) -> LogRequest:
    """The options of `logs`. Raises RequestRefused."""
    return LogRequest(
        container=query.get("container", ""),
        follow=_flag(query.get("follow"), "follow"),
        previous=_flag(query.get("previous"), "previous"),
        timestamps=_flag(query.get("timestamps"), "timestamps"),
        tail=_count(query.get("tail"), "tail", least=0),
        since=_since(query.get("since"), now),
        limit_bytes=_count(query.get("limitBytes"), "limitBytes", least=1),
    )


def exec_request(body: bytes) -> ExecRequest:
    """The command of `exec`. Raises RequestRefused."""
    try:
        request = msgspec.json.decode(body, type=ExecRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(400, ErrorAnswer(error=f"not an exec request: {error}", field="body")) from error
    if not request.command:
        raise RequestRefused(400, ErrorAnswer(error="no command", field="command", allowed="at least one word"))
    return request


def _flag(text: str | None, field: str) -> bool:
    if text in (None, "", "0", "false"):
        return False
    if text in ("1", "true"):
        return True
    raise RequestRefused(
        400, ErrorAnswer(error="not a boolean", field=field, value=str(text), allowed="true, false, 1, 0")
    )


def _count(text: str | None, field: str, *, least: int) -> int | None:
    if text is None or text == "":
        return None
    # More digits than an int64 has are no count; CPython refuses to convert thousands of them.
    if text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least:
        return int(text)
    allowed = f"a whole number, {least} or more"
    raise RequestRefused(400, ErrorAnswer(error="not a count", field=field, value=text[:100], allowed=allowed))


def _since(text: str | None, now: datetime) -> datetime | None:
    """Seconds before now, or an RFC 3339 time."""
    if text is None or text == "":
        return None
    try:
        if text.replace(".", "", 1).isdecimal():
            return now - timedelta(seconds=float(text))
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        allowed = "seconds before now, or an RFC 3339 time"
        answer = ErrorAnswer(error="not a time", field="since", value=text[:100], allowed=allowed)
        raise RequestRefused(400, answer) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
