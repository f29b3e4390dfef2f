"""Spans of the work in progress, for whatever exporter is installed. Without one, each call is one comparison.

    with span("syncPod", pod=ref): ...
    opened = begin("sandbox", pod=ref); opened.end("TimeoutError")    # where no `with` fits; None without an exporter
    metadata()                                                     # for gRPC: the current span as W3C traceparent

The current span is a context variable: tasks and threads that are started inside inherit it as their parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar, Token
from typing import Protocol

from glasslet.api.pod_ref import PodRef


class Traced(Protocol):
    """A span of the exporter. `traceparent`: as in the W3C's Trace Context."""

    traceparent: str

    def end(self, error: str) -> None:
        """It is over; `error`: "" or why it failed."""


class Exporter(Protocol):
    """Makes spans (`otlp.OTLPExporter`)."""

    def start(self, name: str, parent: Traced | None, attributes: Mapping[str, str], *, client: bool) -> Traced: ...


_exporter: Exporter | None = None
_current: ContextVar[Traced | None] = ContextVar("glasslet_span", default=None)


def install(exporter: Exporter | None) -> None:
    """From now on spans go to this exporter; None: to none."""
    global _exporter
    _exporter = exporter


class OpenSpan:
    """A span that is the parent of all that is begun in its context until its end."""

    __slots__ = ("_token", "_traced")

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        self._token: Token[Traced | None] = _current.set(traced)

    def end(self, error: str = "") -> None:
        """It is over."""
        # One that ends in another context (a generator closed elsewhere): the variable ends with that context.
        with suppress(ValueError):
            _current.reset(self._token)
        self._traced.end(error)


def begin(name: str, *, pod: PodRef | None = None, container: str = "", client: bool = False) -> OpenSpan | None:
    """Begins a span below the current one. `client`: a call to another program. None: nothing is exported."""
    if _exporter is None:
        return None
    return OpenSpan(_exporter.start(name, _current.get(), _facts(pod, container), client=client))


def span(name: str, *, pod: PodRef | None = None, client: bool = False) -> AbstractContextManager[None]:
    """The body is a span."""
    opened = begin(name, pod=pod, client=client) if _exporter is not None else None
    return _open_in(opened) if opened is not None else _NO_SPAN


_NO_SPAN = nullcontext()


@contextmanager
def _open_in(opened: OpenSpan) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        opened.end(type(error).__name__)
        raise
    opened.end()


def metadata() -> tuple[tuple[str, str], ...] | None:
    """The current span, as metadata of a gRPC call."""
    if _exporter is None:
        return None
    current = _current.get()
    return (("traceparent", current.traceparent),) if current is not None else None


def _facts(pod: PodRef | None, container: str) -> dict[str, str]:
    facts = {"k8s.container.name": container} if container else {}
    if pod is not None:
        facts |= {"k8s.namespace.name": pod.namespace, "k8s.pod.name": pod.name, "k8s.pod.uid": pod.uid}
    return facts
