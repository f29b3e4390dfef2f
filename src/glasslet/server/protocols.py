"""The protocols that the servers need: functions and values, each small enough to fake."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.api.pod_log_options import PodLogOptions
from glasslet.runtime.model import ObservedPod


class SessionStreams(Struct, frozen=True):
    """The streams of an exec or attach session."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class PodSource(Protocol):
    """The pods of this node."""

    def pods(self) -> Sequence[Pod]:
        """Desired pods with their status: static ones included, mirror pods not."""

    def pod(self, namespace: str, name: str) -> Pod | None:
        """A desired pod by name."""

    def running_pods(self) -> Sequence[ObservedPod]:
        """Pods of which the runtime runs something."""


class LogSource(Protocol):
    """The logs of containers."""

    def read_logs(self, pod: Pod, container: str, options: PodLogOptions) -> AsyncIterator[bytes]:
        """Chunks of log text, the larger the better. Raises LogsNotAvailable before the first chunk, or OSError."""


class StreamSource(Protocol):
    """Sessions in containers. The URLs point at the runtime's streaming server and are good for one use.

    All raise StreamRefused, or a RuntimeCallError of the runtime."""

    async def exec_url(self, pod: Pod, container: str, command: Sequence[str], streams: SessionStreams) -> str:
        """Runs a command."""

    async def attach_url(self, pod: Pod, container: str, streams: SessionStreams) -> str:
        """Joins the main process; whether there is a terminal is the container's matter."""

    async def port_forward_url(self, pod: Pod, ports: Sequence[int]) -> str:
        """Reaches ports of the pod; SPDY clients name them later, so `ports` may be empty."""

    async def run(self, pod: Pod, container: str, command: Sequence[str]) -> bytes:
        """Runs a command to its end and gives stdout followed by stderr. A failing command is StreamRefused."""


class CheckpointSource(Protocol):
    """Archives of running containers."""

    async def checkpoint(self, pod: Pod, container: str, timeout: int) -> str:
        """Writes one and gives its path. `timeout` in seconds, 0 for the usual. Raises CheckpointFailed."""


class CheckpointFailed(Exception):
    """There is no archive. Its text is part of the answer."""


class StreamRefused(Exception):
    """The session is refused. `status`: the HTTP status of the answer."""

    def __init__(self, message: str, *, status: int = 500) -> None:
        super().__init__(message)
        self.status = status


class HealthCheck(Struct, frozen=True):
    """`check` gives None while all is well, else the problem in words."""

    name: str
    check: Callable[[], str | None]


PING = HealthCheck("ping", lambda: None)
"""Passes as long as the server answers."""


class MetricsPage(Protocol):
    """One endpoint's metrics as text."""

    def expose(self) -> bytes: ...


class StatsSource(Protocol):
    """The usage of pods and node, ready to be sent. May raise `stats.summary.StatsUnavailable`."""

    async def summary_json(self, *, only_cpu_and_memory: bool = False) -> bytes:
        """The Summary API."""

    async def resource_metrics(self) -> bytes:
        """Text of /metrics/resource."""

    async def cadvisor_metrics(self) -> bytes:
        """Text of /metrics/cadvisor."""


ConfigZ = Callable[[], Mapping[str, Any]]
"""The effective KubeletConfiguration as plain data, without kind and apiVersion."""
