"""The CPU cost of probes: N pods with one probe each and no other work, in this process.

    python -m benchmarks.probe_cost [--pods 110] [--period 10] [--seconds 60]

Prints, per kind of probe, CPU milliseconds per probe and per cent of a core at that number of pods. The servers run in
a process of their own; exec goes to a runtime in memory, so its figure is the agent's part without the CRI call.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import uvloop
from msgspec.structs import replace

from glasslet.api.container import Container
from glasslet.api.lifecycle import ExecAction, GRPCAction, HTTPGetAction, Probe, TCPSocketAction
from glasslet.api.meta import ObjectMeta
from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import SystemClock
from glasslet.exchange.facts import StatusFacts
from glasslet.host.threads import HostThreads
from glasslet.probes.manager import ProbeManager
from glasslet.probes.memory import ProbeMemory
from glasslet.probes.prober import Prober
from glasslet.probes.results import ProbeResults
from glasslet.probes.settings import ProbeSettings
from glasslet.probes.worker import ProbeReport
from glasslet.record.store import Record
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod, ObservedSandbox
from glasslet.runtime.spec import ExecResult
from glasslet.status.builder import status_builder
from glasslet.telemetry.metrics.probes import ProbeMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry

SERVER = """
import asyncio, sys
import grpc, grpc.aio
async def http(reader, writer):
    try:
        await reader.readuntil(b"\\r\\n\\r\\n")
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    except asyncio.IncompleteReadError:
        pass
    writer.close()
class Health(grpc.GenericRpcHandler):
    def service(self, details):
        async def check(request, context):
            return b"\\x08\\x01"
        return grpc.unary_unary_rpc_method_handler(check)
async def main():
    web = await asyncio.start_server(http, "127.0.0.1", 0)
    rpc = grpc.aio.server()
    rpc.add_generic_rpc_handlers([Health()])
    port = rpc.add_insecure_port("127.0.0.1:0")
    await rpc.start()
    print(web.sockets[0].getsockname()[1], port, flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""


class InstantRuntime:
    """Commands succeed at once."""

    async def exec_sync(self, container: ContainerID, command: tuple[str, ...], timeout: float) -> ExecResult:
        return ExecResult()


async def nobody_knows(host: str) -> tuple[str, ...]:
    raise OSError(host)


@contextmanager
def servers() -> Iterator[tuple[int, int]]:
    """Ports of an HTTP and a gRPC server in another process."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        http, grpc = process.stdout.readline().split()
        yield int(http), int(grpc)
    finally:
        process.terminate()
        process.wait()


def facts(number: int, probe: Probe) -> StatusFacts:
    """A running pod with a readiness probe."""
    uid, now = PodUID(f"uid-{number}"), datetime.now(UTC)
    main = Container(name="main", image="x", readiness_probe=probe)
    running = ObservedContainer(
        id=ContainerID(f"c{number}"),
        name="main",
        attempt=0,
        phase=ContainerPhase.RUNNING,
        sandbox_id=SandboxID(f"s{number}"),
        created_at=now,
        started_at=now,
    )
    sandbox = ObservedSandbox(id=SandboxID(f"s{number}"), attempt=0, ready=True, created_at=now, ips=("127.0.0.1",))
    return StatusFacts(
        pod=Pod(metadata=ObjectMeta(name=f"p{number}", namespace="default", uid=uid), spec=PodSpec(containers=(main,))),
        now=now,
        observed=ObservedPod(
            uid=uid, name=f"p{number}", namespace="default", sandboxes=(sandbox,), containers=(running,)
        ),
    )


async def measure(probe: Probe, *, pods: int, seconds: float) -> tuple[int, float]:
    """(probes that passed, CPU seconds) over that time, once all run on their ticks."""
    record = Record()
    results = ProbeResults()
    changed: list[PodRef] = []
    manager = ProbeManager(
        probing=Prober(
            runtime=InstantRuntime(),  # type: ignore[arg-type]
            resolve=nobody_knows,
            recorder=record,
            settings=ProbeSettings(),
        ),
        results=results,
        memory=ProbeMemory(
            path="/dev/null/none", passing=results.passing, threads=HostThreads(recorder=record), recorder=record
        ),
        report=ProbeReport(
            recorder=record,
            events=lambda *_: None,
            metrics=ProbeMetrics(MetricRegistry()),
            clock=SystemClock(),
        ),
        on_change=changed.append,
    )
    task = asyncio.create_task(manager.run())
    build = status_builder("none")
    for number in range(pods):
        seen = manager.begin(facts(number, probe))
        manager.follow(seen, build(seen))
    await asyncio.sleep(probe.period_seconds * 1.5)
    gc.collect()
    done = sum(len(results.last(PodRef("default", f"p{n}", PodUID(f"uid-{n}")))) for n in range(pods))
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    await asyncio.sleep(seconds)
    used, took = _used(before), time.monotonic() - began
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert done >= pods
    assert len(changed) == pods, "not all passed"
    return round(pods * took / probe.period_seconds), used


async def bare(port: int) -> None:
    """One bare GET: connect, send, read to the end, close."""
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        sock.setblocking(False)
        await loop.sock_connect(sock, ("127.0.0.1", port))
        await loop.sock_sendall(sock, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while await loop.sock_recv(sock, 65536):
            pass


async def with_aiohttp(port: int) -> None:
    """One GET with aiohttp, which the agent uses elsewhere."""
    import aiohttp

    connector = aiohttp.TCPConnector(force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"http://127.0.0.1:{port}/") as answer,
    ):
        await answer.read()


async def paced(get: Callable[[int], Awaitable[None]], port: int, pause: float, seconds: float) -> float:
    """CPU seconds for each GET at the pace of the probes, because rare work finds cold caches."""
    await get(port)
    before, count = resource.getrusage(resource.RUSAGE_SELF), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await get(port)
        count += 1
        await asyncio.sleep(pause)
    return _used(before) / count


def _used(before: resource.struct_rusage) -> float:
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


async def run(pods: int, period: int, seconds: float) -> None:
    """Prints the table."""
    with servers() as (http, grpc):
        kinds = {
            "httpGet": Probe(http_get=HTTPGetAction(path="/", port=http)),
            "tcpSocket": Probe(tcp_socket=TCPSocketAction(port=http)),
            "grpc": Probe(grpc=GRPCAction(port=grpc)),
            "exec (agent's part)": Probe(exec=ExecAction(command=("true",))),
        }
        print(f"{pods} pods, one readiness probe every {period} s, {seconds:.0f} s each\n")
        print(f"{'kind':22}{'ms CPU a probe':>16}{'% of a core':>14}")
        for name, one in {"GET, bare sockets": bare, "GET, aiohttp": with_aiohttp}.items():
            used = await paced(one, http, period / pods, seconds)
            print(f"{name:22}{1000 * used:16.3f}{100 * used * pods / period:14.2f}")
        for name, handler in kinds.items():
            count, used = await measure(replace(handler, period_seconds=period), pods=pods, seconds=seconds)
            print(f"{name:22}{1000 * used / count:16.3f}{100 * used / seconds:14.2f}")


def main() -> None:
    """Parses and runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=110)
    parser.add_argument("--period", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(given.pods, given.period, given.seconds))


if __name__ == "__main__":
    main()
