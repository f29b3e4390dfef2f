"""An OpenTelemetry collector: OTLP's trace service over gRPC, which keeps what it gets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """All spans so far, and the attributes of their resource."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resource: dict[str, str] = {}
        self.port = 0
        self._news = threading.Condition()

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802
        """The service's only method."""
        with self._news:
            for resource in request.resource_spans:
                self.resource = {entry.key: entry.value.string_value for entry in resource.resource.attributes}
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            self._news.notify_all()
        return trace_service_pb2.ExportTraceServiceResponse()

    def wait_for(self, found: Callable[[list[Any]], bool], seconds: float = 30.0) -> list[Any]:
        """The spans once they are as wanted."""
        end = time.monotonic() + seconds
        with self._news:
            while not found(self.spans):
                assert self._news.wait(max(0.0, end - time.monotonic())), sorted({span.name for span in self.spans})
            return list(self.spans)


@contextmanager
def running_collector() -> Iterator[Collector]:
    """One on a port of loopback."""
    collector = Collector()
    server = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    collector.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait()
