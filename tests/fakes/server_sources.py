"""What a server is given, in memory: pods, logs and sessions that tests script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from glasslet.api.container import Container
from glasslet.api.meta import ObjectMeta
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.pod_log_options import PodLogOptions
from glasslet.runtime.logs.container_logs import LogsNotAvailable
from glasslet.runtime.model import ObservedPod
from glasslet.server.protocols import PING, CheckpointFailed, HealthCheck, SessionStreams, StreamRefused
from glasslet.server.routes import Sources
from glasslet.telemetry.metrics.catalog import Metrics


def pod(name: str = "web", *, container: str = "main", uid: str = "uid-1") -> Pod:
    """A pod with one container."""
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=ObjectMeta(name=name, namespace="default", uid=uid),
        spec=PodSpec(containers=(Container(name=container, image="busybox"),)),
    )


@dataclass
class FakePods:
    """The pods of a node."""

    desired: list[Pod] = field(default_factory=lambda: [pod()])
    running: list[ObservedPod] = field(default_factory=list)

    def pods(self) -> Sequence[Pod]:
        return self.desired

    def pod(self, namespace: str, name: str) -> Pod | None:
        return next((p for p in self.desired if (p.metadata.namespace, p.metadata.name) == (namespace, name)), None)

    def running_pods(self) -> Sequence[ObservedPod]:
        return self.running


Chunks = Callable[[PodLogOptions], AsyncIterator[bytes]]


async def hello(_options: PodLogOptions) -> AsyncIterator[bytes]:
    """A short log."""
    yield b"hello\n"
    yield b"world\n"


@dataclass
class FakeLogs:
    """Container logs. `refusal`: why there are none."""

    chunks: Chunks = hello
    refusal: str | None = None
    asked: list[PodLogOptions] = field(default_factory=list)

    async def read_logs(self, pod: Pod, container: str, options: PodLogOptions) -> AsyncIterator[bytes]:
        self.asked.append(options)
        if self.refusal is not None:
            raise LogsNotAvailable(self.refusal)
        async for chunk in self.chunks(options):
            yield chunk


@dataclass
class FakeStreams:
    """Sessions at a URL of the test's own streaming server."""

    url: str = ""
    error: Exception | None = None
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    async def exec_url(self, pod: Pod, container: str, command: Sequence[str], streams: SessionStreams) -> str:
        return self._give("exec", pod.metadata.name, container, tuple(command), streams)

    async def attach_url(self, pod: Pod, container: str, streams: SessionStreams) -> str:
        return self._give("attach", pod.metadata.name, container, streams)

    async def port_forward_url(self, pod: Pod, ports: Sequence[int]) -> str:
        return self._give("port_forward", pod.metadata.name, tuple(ports))

    async def run(self, pod: Pod, container: str, command: Sequence[str]) -> bytes:
        self._give("run", pod.metadata.name, container, tuple(command))
        if command[0] == "false":
            raise StreamRefused("command 'false' exited with 1: ")
        return " ".join(command).encode() + b"\n"

    def _give(self, *what: Any) -> str:
        self.asked.append(what)
        if self.error is not None:
            raise self.error
        return self.url


@dataclass
class FakeCheckpoints:
    """Archives that are only names."""

    problem: str = ""
    asked: list[tuple[str, str, int]] = field(default_factory=list)

    async def checkpoint(self, pod: Pod, container: str, timeout: int) -> str:
        self.asked.append((pod.metadata.name, container, timeout))
        if self.problem:
            raise CheckpointFailed(self.problem)
        return f"/checkpoints/{container}.tar"


@dataclass
class FakeNode:
    """Everything together."""

    pods: FakePods = field(default_factory=FakePods)
    logs: FakeLogs = field(default_factory=FakeLogs)
    streams: FakeStreams = field(default_factory=FakeStreams)
    checkpoints: FakeCheckpoints | None = field(default_factory=FakeCheckpoints)
    configuration: Mapping[str, Any] = field(default_factory=lambda: {"maxPods": 110})
    metrics: Metrics = field(default_factory=lambda: Metrics(node_name="node-1"))
    sick: str | None = None
    extra_checks: tuple[HealthCheck, ...] = ()
    verbosity: int = 0

    def sources(self) -> Sources:
        """For a server."""
        return Sources(
            pods=self.pods,
            logs=self.logs,
            configz=lambda: self.configuration,
            metrics=self.metrics,
            checks=(PING, HealthCheck("syncloop", lambda: self.sick), *self.extra_checks),
            streams=self.streams,
            checkpoints=self.checkpoints,
            set_verbosity=self._set_verbosity,
        )

    def _set_verbosity(self, verbosity: int) -> None:
        if verbosity > 10:
            raise ValueError(f"verbosity {verbosity}: allowed are 0 to 10")
        self.verbosity = verbosity
