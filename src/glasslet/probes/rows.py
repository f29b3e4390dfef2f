"""Single results as `describe` shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.answers.pods import ProbeRow
from glasslet.probes.results import ProbeResult


def probe_rows(results: Iterable[ProbeResult]) -> tuple[ProbeRow, ...]:
    """The results, in the order they come in."""
    return tuple(
        ProbeRow(
            at=result.began,
            container=result.container,
            kind=result.kind.value.lower(),
            verdict=result.verdict.value,
            note=result.error or result.note,
            total_ms=_ms(result.total) or 0.0,
            dns_ms=_ms(result.parts.dns),
            connect_ms=_ms(result.parts.connect),
            tls_ms=_ms(result.parts.tls),
            first_byte_ms=_ms(result.parts.first_byte),
            late_ms=_ms(result.late) or 0.0,
            stalled_ms=_ms(result.stalled) or 0.0,
            tries=result.tries,
            id=result.instance,
        )
        for result in results
    )


def _ms(seconds: float | None) -> float | None:
    return round(seconds * 1000, 3) if seconds is not None else None
