"""One result of one probe: the right kind of try, again where it could not be run, again where we were too slow."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import AsyncIterator
from time import perf_counter
from typing import Protocol

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.lifecycle import Probe
from glasslet.api.object import ContainerID
from glasslet.probes.answer import Answer, Unprobeable, port_number
from glasslet.probes.connection import Resolve
from glasslet.probes.lateness import Lateness
from glasslet.probes.results import Verdict
from glasslet.probes.schedule import timing_of
from glasslet.probes.settings import ProbeSettings
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.protocols import RuntimeService

logger = logging.getLogger(__name__)

TRIES = 3
"""probe.retries, for what could not be run; as many for what only our own lateness failed."""
_LATE_SHARE = 0.25
"""Of the time limit: standing still for less cannot be why a probe failed that had the rest to answer."""
_STEPS = 20


class Subject(Struct, frozen=True, kw_only=True):
    """What is probed. `host`: the pod's IP, or the node's for pods on its network; "" while there is none."""

    container: Container
    instance: ContainerID
    host: str


class Tried(Struct, frozen=True, kw_only=True):
    """The answer that counts. `total`: seconds for all tries; `stalled`: for which the agent stood still."""

    answer: Answer
    tries: int
    total: float
    stalled: float


class Probing(Protocol):
    """Runs a probe once, in the sense of its schedule."""

    async def __call__(self, probe: Probe, subject: Subject) -> Tried: ...


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

    async def __call__(self, probe: Probe, subject: Subject) -> Tried:
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

    async def _try(self, probe: Probe, subject: Subject, timeout: float) -> Answer:
        try:
            return await self._handler(probe, subject, timeout)
        except Unprobeable as error:
            return Answer(verdict=Verdict.UNKNOWN, error=str(error))
        except Exception as error:
            # A probe that cannot read an answer has failed. The error's text may quote the answer, so only its type and
            # its place are shown.
            name = type(error).__name__
            place = traceback.extract_tb(error.__traceback__)[-1]
            logger.error("probe broke off", extra={"error": name, "place": f"{place.filename}:{place.lineno}"})
            return Answer(verdict=Verdict.FAILURE, output=f"probe broke off: {name}", brief=f"broke off: {name}")

    async def _handler(self, probe: Probe, subject: Subject, timeout: float) -> Answer:
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
            from glasslet.probes.tcp_socket import probe_tcp

            host, port = _host(tcp.host, subject), port_number(tcp.port, subject.container)
            return await probe_tcp(host, port, timeout=timeout, resolve=self._resolve)
        if (grpc := probe.grpc) is not None:
            from glasslet.probes.grpc_health import probe_grpc

            port = port_number(grpc.port, subject.container)
            return await probe_grpc(_host("", subject), port, grpc.service or "", timeout=timeout)
        raise Unprobeable("the probe has no handler: want exec, httpGet, tcpSocket or grpc")

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Where exec probes are limited: waits for one's turn."""
        if self._places is None:
            yield
            return
        with self._recorder.wait(WaitKind.QUEUE, on="its turn among exec probes"):
            await self._places.acquire()
        try:
            yield
        finally:
            self._places.release()


def _host(own: str, subject: Subject) -> str:
    host = own or subject.host
    if not host:
        raise Unprobeable("the pod has no IP address")
    return host
