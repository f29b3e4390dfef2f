"""How long the start of a node took: boot, process, registration, readiness."""

from __future__ import annotations

import time
from collections.abc import Callable

from glasslet.telemetry.metrics.agent import boot_time, process_start_time
from glasslet.telemetry.metrics.registry import MetricRegistry

_NAME = "kubelet_node_startup_{}duration_seconds"


class NodeStartMetrics:
    """`kubelet_node_startup_*`: set for a node that this process created, each once; zero for all others."""

    def __init__(
        self,
        registry: MetricRegistry,
        *,
        now: Callable[[], float] = time.time,
        booted: Callable[[], float] = boot_time,
        started: Callable[[], float] = process_start_time,
    ) -> None:
        """All times are Unix times in seconds."""
        self._now = now
        self._booted = booted
        self._started = started
        self._total = registry.gauge(_NAME.format(""), "Seconds from the machine's boot to the node's readiness.")
        self._before = registry.gauge(
            _NAME.format("pre_kubelet_"), "Seconds from the machine's boot to the start of this process."
        )
        self._start = registry.gauge(
            _NAME.format("pre_registration_"), "Seconds from the start of this process to the first try to register."
        )
        self._registration = registry.gauge(_NAME.format("registration_"), "Seconds that registration took.")
        self._after = registry.gauge(
            _NAME.format("post_registration_"), "Seconds from registration to the node's readiness."
        )
        self._tried_at: float | None = None
        self._created_at: float | None = None
        self._done = False

    def registering(self) -> None:
        """An attempt to register begins."""
        if self._tried_at is None:
            self._tried_at = self._now()

    def created(self) -> None:
        """This process has created the Node."""
        if self._created_at is not None:
            return
        self._created_at = self._now()
        tried = self._tried_at or self._created_at
        started = self._started()
        self._before.set(started - self._booted())
        self._start.set(tried - started)
        self._registration.set(self._created_at - tried)

    def ready(self) -> None:
        """The API server has a status with the node ready."""
        if self._created_at is None or self._done:
            return
        self._done = True
        now = self._now()
        self._after.set(now - self._created_at)
        self._total.set(now - self._booted())
