"""One result of one probe: tried again where it could not be run, or where the agent itself was too slow."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import AsyncIterator
from time import perf_counter
from types import TracebackType
from typing import Protocol

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.lifecycle import Probe
from glasslet.api.object import ContainerID
from glasslet.probes.answer import ProbeAnswer, Unprobeable, join_host_port, port_number
from glasslet.probes.connection import ConnectionFailed, Resolve, Stopwatch, close, connect
from glasslet.probes.results import ProbeVerdict
from glasslet.probes.schedule import timing_of
from glasslet.probes.settings import ProbeSettings
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.protocols import RuntimeService

logger = logging.getLogger(__name__)

TRIES = 3
"""probe.retries, for tries that could not be run; as many for tries that only the agent's own lateness failed."""
_LATE_SHARE = 0.25
"""Share of the time limit: a shorter stall of the agent cannot be why a probe failed."""
_STEPS = 20
TOLERANCE = 0.02
"""Seconds; a loop is always a little late."""


class ProbeSubject(Struct, frozen=True, kw_only=True):
    """The container to probe. `host`: the pod's IP, or the node's for pods on its network; "" while there is none."""

    container: Container
    instance: ContainerID
    host: str


class Tried(Struct, frozen=True, kw_only=True):
    """The answer that counts. `total`: seconds for all tries; `stalled`: for which the agent stood still."""

    answer: ProbeAnswer
    tries: int
    total: float
    stalled: float


class Probing(Protocol):
    """Runs a probe for one result."""

    async def __call__(self, probe: Probe, subject: ProbeSubject) -> Tried: ...


class Lateness:
    """Sums in `seconds` how late the loop woke a timer that ticks while the body runs. A body shorter than `step`
    seconds costs one timer that is never reached."""

    def __init__(self, step: float) -> None:
        self.seconds = 0.0
        self._step = step
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Lateness:
        self._next()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._add()

    def _next(self) -> None:
        self._due = self._loop.time() + self._step
        self._timer = self._loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        self._add()
        self._next()

    def _add(self) -> None:
        late = self._loop.time() - self._due
        if late > TOLERANCE:
            self.seconds += late


class Prober:
    """`Probing` on real containers."""

    def __init__(
        self, *, runtime: RuntimeService, resolve: Resolve, recorder: Recorder, settings: ProbeSettings
    ) -> None:
        self._runtime = runtime
        self._resolve = resolve
        self._recorder = recorder
        self._settings = settings
        self._places = asyncio.Semaphore(settings.exec_at_once) if settings.exec_at_once else None

    async def __call__(self, probe: Probe, subject: ProbeSubject) -> Tried:
        """Up to three tries."""
        timeout = timing_of(probe).timeout
        began = perf_counter()
        stalled = 0.0
        tries = 0
        while True:
            with Lateness(timeout / _STEPS) as lateness:
                answer = await self._try(probe, subject, timeout)
            tries += 1
            stalled += lateness.seconds
            late = self._settings.repeat_late and answer.timed_out and lateness.seconds >= _LATE_SHARE * timeout
            if tries == TRIES or not (answer.error or late):
                return Tried(answer=answer, tries=tries, total=perf_counter() - began, stalled=stalled)
            if late:
                self._recorder.decided("probe again: the agent itself was late", late_s=round(lateness.seconds, 3))

    async def _try(self, probe: Probe, subject: ProbeSubject, timeout: float) -> ProbeAnswer:
        try:
            return await self._handler(probe, subject, timeout)
        except Unprobeable as error:
            return ProbeAnswer(verdict=ProbeVerdict.UNKNOWN, error=str(error))
        except Exception as error:
            # A probe that cannot read an answer has failed. The error's text may quote the answer, so only its type and
            # its place are shown.
            name = type(error).__name__
            place = traceback.extract_tb(error.__traceback__)[-1]
            logger.error("probe broke off", extra={"error": name, "place": f"{place.filename}:{place.lineno}"})
            return ProbeAnswer(
                verdict=ProbeVerdict.FAILURE, output=f"probe broke off: {name}", brief=f"broke off: {name}"
            )

    async def _handler(self, probe: Probe, subject: ProbeSubject, timeout: float) -> ProbeAnswer:
        if probe.exec is not None:
            from glasslet.probes.exec_command import probe_command, probe_exec

            command = probe_command(probe.exec, subject.container)
            async with self._place():
                fails = self._settings.exec_timeout
                return await probe_exec(self._runtime, subject.instance, command, timeout=timeout, timeout_fails=fails)
        if (http := probe.http_get) is not None:
            from glasslet.probes.http_get import probe_http

            host, port = _host(http.host, subject), port_number(http.port, subject.container)
            return await probe_http(http, host=host, port=port, timeout=timeout, resolve=self._resolve)
        if (tcp := probe.tcp_socket) is not None:
            host, port = _host(tcp.host, subject), port_number(tcp.port, subject.container)
            return await probe_tcp(host, port, timeout=timeout, resolve=self._resolve)
        if (grpc := probe.grpc) is not None:
            from glasslet.probes.grpc_health import probe_grpc

            port = port_number(grpc.port, subject.container)
            return await probe_grpc(_host("", subject), port, grpc.service or "", timeout=timeout)
        raise Unprobeable("the probe has no handler: want exec, httpGet, tcpSocket or grpc")

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Waits for a place where exec probes are limited."""
        if self._places is None:
            yield
            return
        with self._recorder.wait(WaitKind.QUEUE, on="a place among exec probes"):
            await self._places.acquire()
        try:
            yield
        finally:
            self._places.release()


async def probe_tcp(host: str, port: int, *, timeout: float, resolve: Resolve) -> ProbeAnswer:
    """One connection within `timeout` seconds, closed at once."""
    watch = Stopwatch()
    try:
        async with asyncio.timeout(timeout):
            sock = await connect(host, port, resolve=resolve, watch=watch)
    except TimeoutError:
        output = f"dial tcp {join_host_port(host, port)}: i/o timeout"
        return ProbeAnswer(verdict=ProbeVerdict.FAILURE, output=output, brief=output, timed_out=True, parts=watch.parts)
    except ConnectionFailed as error:
        return ProbeAnswer(verdict=ProbeVerdict.FAILURE, output=str(error), brief=str(error), parts=watch.parts)
    close(sock)
    return ProbeAnswer(verdict=ProbeVerdict.SUCCESS, brief="connected", parts=watch.parts)


def _host(own: str, subject: ProbeSubject) -> str:
    host = own or subject.host
    if not host:
        raise Unprobeable("the pod has no IP address")
    return host
