"""Installs the exporter of spans, if `tracing` is configured."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from glasslet.assembly.foundation import Foundation
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.telemetry.tracing.spans import install
from glasslet.version import KUBELET_VERSION

_log = logging.getLogger(__name__)
_LAST_SPANS = 2.0
"""Seconds that the last spans have to reach the collector when the agent ends."""


@asynccontextmanager
async def exporting_spans(foundation: Foundation) -> AsyncIterator[None]:
    """Spans are exported while the body runs."""
    tracing = foundation.configuration.tracing
    if tracing is None:
        yield
        return
    try:
        from glasslet.telemetry.tracing.otlp import OTLPExporter, TracingSettings
    except ImportError as error:
        _log.error("tracing is configured, but its libraries are absent: pip install 'glasslet[tracing]' (%s)", error)
        yield
        return
    exporter = OTLPExporter(
        TracingSettings(
            endpoint=tracing.endpoint or "",
            rate=tracing.sampling_rate_per_million,
            node=foundation.node_name,
            version=KUBELET_VERSION,
        )
    )
    install(exporter)
    try:
        yield
    finally:
        install(None)
        try:
            async with asyncio.timeout(_LAST_SPANS):
                await OwnThreads("last spans").run(exporter.close)
        except TimeoutError:
            _log.warning("the collector of spans did not take the last ones")
