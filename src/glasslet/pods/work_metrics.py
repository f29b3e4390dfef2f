"""What workers count of their work. `telemetry.metrics.pods` has the real ones; without any, nothing is counted."""

from __future__ import annotations

from typing import Protocol

from glasslet.telemetry.metrics.pods import PodWork


class WorkMetrics(Protocol):
    """`kubelet_pod_worker_*`, `kubelet_started_*` and their like."""

    def worked(self, work: PodWork, seconds: float) -> None: ...
    def worker_started(self, seconds_since_seen: float, *, containers: int) -> None: ...
    def sandbox_attempted(self, *, user_namespace: bool) -> None: ...
    def sandbox_failed(self, *, user_namespace: bool) -> None: ...
    def container_attempted(self, kind: str) -> None: ...
    def container_failed(self, kind: str, reason: str) -> None: ...
    def pod_restarted(self, *, static: bool) -> None: ...
    def orphan_found(self) -> None: ...
    def hook_fell_back(self) -> None: ...
    def sleep_cut(self) -> None: ...


class StartMetrics(Protocol):
    """`kubelet_pod_start_*`."""

    def running(self, seconds: float) -> None: ...
    def started(self, total_seconds: float, *, sli_seconds: float | None, host_network: bool = False) -> None: ...


class Uncounted:
    """Implements both."""

    def worked(self, work: PodWork, seconds: float) -> None:
        """Nothing."""

    def worker_started(self, seconds_since_seen: float, *, containers: int) -> None:
        """Nothing."""

    def sandbox_attempted(self, *, user_namespace: bool) -> None:
        """Nothing."""

    def sandbox_failed(self, *, user_namespace: bool) -> None:
        """Nothing."""

    def container_attempted(self, kind: str) -> None:
        """Nothing."""

    def container_failed(self, kind: str, reason: str) -> None:
        """Nothing."""

    def pod_restarted(self, *, static: bool) -> None:
        """Nothing."""

    def orphan_found(self) -> None:
        """Nothing."""

    def hook_fell_back(self) -> None:
        """Nothing."""

    def sleep_cut(self) -> None:
        """Nothing."""

    def running(self, seconds: float) -> None:
        """Nothing."""

    def started(self, total_seconds: float, *, sli_seconds: float | None, host_network: bool = False) -> None:
        """Nothing."""


UNCOUNTED = Uncounted()
