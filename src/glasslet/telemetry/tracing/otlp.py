"""Spans by OpenTelemetry's SDK, sent by OTLP over gRPC. Imported only when `tracing` is configured: the SDK is an
optional dependency (`pip install glasslet[tracing]`), and costs 0.2 s of a start.

Sampling is as the Go kubelet's: a rate per million of root spans, none without a rate; children follow their parent.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context

from glasslet.telemetry.tracing.spans import Traced

ENDPOINT = "localhost:4317"
WAITING = 2048
"""Spans that wait to be sent."""
EXPORT_MS = 5_000
"""Milliseconds that one message to the collector may take."""


class TracingSettings(Struct, frozen=True, kw_only=True):
    """`rate`: samplingRatePerMillion, None: no root span is sampled; `node`: its name."""

    endpoint: str
    rate: int | None
    node: str
    version: str


class OTLPSpan:
    """One span."""

    __slots__ = ("sdk", "traceparent")

    def __init__(self, sdk: Span) -> None:
        self.sdk = sdk
        context = sdk.get_span_context()
        self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"

    def end(self, error: str) -> None:
        """It is over."""
        if error:
            self.sdk.set_status(Status(StatusCode.ERROR, error))
        self.sdk.end()


class OTLPExporter:
    """Sends spans in batches from a thread of its own. A collector that is away costs spans, nothing else."""

    def __init__(self, settings: TracingSettings) -> None:
        rate = TraceIdRatioBased(settings.rate / 1_000_000) if settings.rate else ALWAYS_OFF
        names = {
            "service.name": "kubelet",
            "service.version": settings.version,
            "service.instance.id": settings.node,
            "k8s.node.name": settings.node,
        }
        self._provider = TracerProvider(sampler=ParentBased(rate), resource=Resource(names), shutdown_on_exit=False)
        sender = OTLPSpanExporter(endpoint=settings.endpoint or ENDPOINT, insecure=True, timeout=EXPORT_MS / 1000)
        self._provider.add_span_processor(
            BatchSpanProcessor(sender, max_queue_size=WAITING, schedule_delay_millis=1000)
        )
        self._tracer = self._provider.get_tracer("glasslet", settings.version)

    def start(self, name: str, parent: Traced | None, attributes: Mapping[str, str], *, client: bool) -> OTLPSpan:
        """A span that has begun."""
        context = set_span_in_context(parent.sdk) if isinstance(parent, OTLPSpan) else None
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        return OTLPSpan(self._tracer.start_span(name, context=context, kind=kind, attributes=dict(attributes)))

    def close(self) -> None:
        """Sends what waits, and ends. Blocks for some seconds if the collector is away."""
        self._provider.shutdown()
