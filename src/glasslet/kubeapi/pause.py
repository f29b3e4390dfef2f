"""How long to wait before a request is tried again.

A server that is overloaded, or that refuses, is spared by waiting longer each time. One that nobody reaches is not:
there the pauses stay short, so that within ten seconds of its return everything is told and known.
"""

from __future__ import annotations

from glasslet.concurrency.jitter import jittered
from glasslet.kubeapi.errors import APIError, Throttled, Unavailable

WHILE_AWAY = 4.0
"""Seconds, the longest pause before a server that gave no answer is asked again, before jitter (half of it at most)."""


def pause_after(error: APIError, delay: float) -> float:
    """Seconds until the next try after `error`; `delay` is where the caller's back-off has come to."""
    if isinstance(error, Throttled):
        return jittered(max(delay, error.retry_after))
    if isinstance(error, Unavailable) and error.code == 0:
        return jittered(min(delay, WHILE_AWAY))
    return jittered(delay)
