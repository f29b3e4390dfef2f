"""The pod workers' own slice of the configuration."""

from __future__ import annotations

from msgspec import Struct

from glasslet.pods.backoff import BackOffLimits


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """Seconds. Each pause is stretched at random by up to half."""

    sync_frequency: float = 60.0
    """Between syncs of a pod without news (syncFrequency)."""
    error_pause: float = 10.0
    """Before a failed step is tried again (podworker.error_backoff)."""
    short_pause: float = 1.0
    """Before a failed step is tried again while network or runtime are not ready (podworker.network_backoff)."""
    volume_pause_first: float = 0.5
    volume_pause_last: float = 122.0
    """Failed volume operations: doubling from the first to the last."""
    limits: BackOffLimits = BackOffLimits()
    """Of restarts."""
