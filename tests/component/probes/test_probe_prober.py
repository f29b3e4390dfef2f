"""One result of one probe: what is tried again, what is limited, what the agent's own lateness does."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from glasslet.api.container import Container
from glasslet.api.lifecycle import ExecAction, GRPCAction, HTTPGetAction, Probe, TCPSocketAction
from glasslet.api.object import ContainerID
from glasslet.probes.answer import READ_BYTES
from glasslet.probes.prober import Prober, ProbeSubject
from glasslet.probes.results import ProbeVerdict
from glasslet.probes.settings import ProbeSettings
from glasslet.record.stations import WaitKind
from glasslet.record.store import Record
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeUnavailable
from glasslet.runtime.spec import ContainerSpec, SandboxSpec
from tests.builders.pod import container
from tests.fakes.loopback_server import listening
from tests.fakes.programs import Command, Program
from tests.fakes.runtime import FakeRuntime

MAIN = container()


async def no_such_host(host: str) -> tuple[str, ...]:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def prober(runtime: FakeRuntime, record: Record | None = None, **settings: Any) -> Prober:
    return Prober(
        runtime=runtime,
        resolve=no_such_host,
        recorder=record or Record(),
        settings=ProbeSettings(**settings),
    )


def subject(instance: str = "none", host: str = "", spec: Container = MAIN) -> ProbeSubject:
    return ProbeSubject(container=spec, instance=ContainerID(instance), host=host)


async def running(runtime: FakeRuntime, *commands: tuple[str, Command], name: str = "main") -> str:
    """A running container in which these commands can be run."""
    runtime.program(name, Program(commands=dict(commands)))
    pod = SandboxSpec(name="web", namespace="default", uid="1", attempt=0)
    sandbox = await runtime.run_sandbox(pod)
    spec = ContainerSpec(name=name, attempt=0, image="docker.io/library/busybox:1.36")
    instance = await runtime.create_container(sandbox, spec, pod)
    await runtime.start_container(instance)
    return instance


def execs(*command: str, **fields: Any) -> Probe:
    return Probe(exec=ExecAction(command=command), **fields)


# -- exec --------------------------------------------------------------------------------------------------------------


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("code", "verdict"), [(0, ProbeVerdict.SUCCESS), (1, ProbeVerdict.FAILURE), (137, ProbeVerdict.FAILURE)]
)
async def test_a_command_passes_with_exit_code_0(code: int, verdict: ProbeVerdict) -> None:
    # behaviours.md §10: "exec: exit 0 = success, other = failure ... stdout then stderr"
    runtime = FakeRuntime()
    instance = await running(runtime, ("check -v", Command(exit_code=code, stdout=b"out,", stderr=b"err")))
    tried = await prober(runtime)(execs("check", "-v"), subject(instance))
    assert (tried.answer.verdict, tried.answer.output) == (verdict, "out,err")
    assert tried.answer.brief == f"exit code {code}", "what a command says is not for the record"


@pytest.mark.looptime
async def test_of_a_command_10_kib_are_kept() -> None:
    # behaviours.md §10: "10 KiB kept"
    runtime = FakeRuntime()
    instance = await running(runtime, ("check", Command(exit_code=1, stdout=b"x" * 9000, stderr=b"y" * 9000)))
    output = (await prober(runtime)(execs("check"), subject(instance))).answer.output
    assert output == "x" * 9000 + "y" * (READ_BYTES - 9000)


@pytest.mark.looptime
async def test_a_command_that_takes_too_long_fails() -> None:
    # behaviours.md §10: "time-out = failure"
    runtime = FakeRuntime()
    instance = await running(runtime, ("sleep 100", Command(takes=100)))
    tried = await prober(runtime)(execs("sleep", "100", timeout_seconds=2), subject(instance))
    assert tried.answer.verdict is ProbeVerdict.FAILURE
    assert tried.answer.output == 'command timed out: "sleep 100" timed out after 2s'
    assert tried.tries == 1


@pytest.mark.looptime
async def test_with_the_gate_off_a_command_that_takes_too_long_is_an_error() -> None:
    """Gate ExecProbeTimeout: "Exec probes obey timeoutSeconds"."""
    runtime = FakeRuntime()
    instance = await running(runtime, ("sleep 100", Command(takes=100)))
    tried = await prober(runtime, exec_timeout=False)(execs("sleep", "100", timeout_seconds=2), subject(instance))
    assert (tried.answer.verdict, tried.tries) == (ProbeVerdict.UNKNOWN, 3)


@pytest.mark.looptime
async def test_a_probe_that_errors_is_tried_three_times_at_once() -> None:
    # behaviours.md §10: "Each probe is tried up to 3 times at once when it errors (not when it fails)."
    runtime = FakeRuntime()
    instance = await running(runtime)
    runtime.fail(Verb.EXEC_SYNC, RuntimeUnavailable("ExecSync", "gone", code="UNAVAILABLE"), times=None)
    tried = await prober(runtime)(execs("true"), subject(instance))
    assert (tried.tries, tried.answer.verdict, tried.answer.error) == (
        3,
        ProbeVerdict.UNKNOWN,
        "rpc error: code = Unavailable desc = gone",
    )


@pytest.mark.looptime
async def test_a_try_that_can_be_run_is_the_last_one() -> None:
    runtime = FakeRuntime()
    instance = await running(runtime)
    runtime.fail(Verb.EXEC_SYNC, RuntimeUnavailable("ExecSync", "gone"), times=2)
    tried = await prober(runtime)(execs("true"), subject(instance))
    assert (tried.tries, tried.answer.verdict) == (3, ProbeVerdict.SUCCESS)


@pytest.mark.looptime
@pytest.mark.parametrize("at_once", [0, 2])
async def test_the_number_of_commands_at_once_can_be_limited(at_once: int) -> None:
    """Off by default."""
    runtime, record = FakeRuntime(), Record()
    instance = await running(runtime, ("check", Command(takes=1.0)))
    probing = prober(runtime, record, exec_at_once=at_once)
    began = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        for _ in range(6):
            group.create_task(probing(execs("check", timeout_seconds=5), subject(instance)))
        await asyncio.sleep(0.5)
        queued = [wait for wait in record.live_waits() if wait.kind == WaitKind.QUEUE]
        assert len(queued) == (4 if at_once else 0)
    assert asyncio.get_running_loop().time() - began == pytest.approx(3.0 if at_once else 1.0)


# -- what cannot be run ------------------------------------------------------------------------------------------------


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("probe", "host", "error"),
    [
        (Probe(http_get=HTTPGetAction(port="web")), "10.0.0.1", "port web not found"),
        (Probe(tcp_socket=TCPSocketAction(port=70000)), "10.0.0.1", "invalid port number: 70000"),
        (Probe(http_get=HTTPGetAction(port=80)), "", "the pod has no IP address"),
        (Probe(grpc=GRPCAction(port=80)), "", "the pod has no IP address"),
        (Probe(), "10.0.0.1", "the probe has no handler: want exec, httpGet, tcpSocket or grpc"),
    ],
)
async def test_a_probe_that_cannot_be_run_says_why(probe: Probe, host: str, error: str) -> None:
    tried = await prober(FakeRuntime())(probe, subject(host=host))
    assert (tried.answer.verdict, tried.answer.error, tried.tries) == (ProbeVerdict.UNKNOWN, error, 3)


# -- the agent's own lateness: real time, because only that can pass while the loop stands still -----------------------


@asynccontextmanager
async def late_server(delay: float) -> AsyncIterator[int]:
    """The port of a server that takes its time."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(delay)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with listening(handle) as port:
        yield port
    await asyncio.sleep(0.1)


async def probe_while_standing_still(*, repeat_late: bool) -> tuple[ProbeVerdict, int, float, list[str]]:
    record = Record()
    async with late_server(0.1) as port:
        asyncio.get_running_loop().call_later(0.05, time.sleep, 3.0)  # the agent does something else
        probe = Probe(http_get=HTTPGetAction(port=port, path="/"), timeout_seconds=2)
        tried = await prober(FakeRuntime(), record, repeat_late=repeat_late)(probe, subject(host="127.0.0.1"))
    agent = record.of(None)
    told = [str(getattr(event, "what", "")) for event in agent.events] if agent else []
    return tried.answer.verdict, tried.tries, tried.stalled, told


async def test_a_failure_that_only_our_lateness_caused_is_repeated_before_it_counts() -> None:
    verdict, tries, stalled, told = await probe_while_standing_still(repeat_late=True)
    assert (verdict, tries) == (ProbeVerdict.SUCCESS, 2)
    assert stalled > 0.5
    assert "probe again: the agent itself was late" in told


async def test_without_the_option_it_counts_as_in_the_go_kubelet() -> None:
    verdict, tries, stalled, _ = await probe_while_standing_still(repeat_late=False)
    assert (verdict, tries) == (ProbeVerdict.FAILURE, 1)
    assert stalled > 0.5


async def test_a_failure_while_the_agent_was_on_time_is_not_repeated() -> None:
    async with late_server(1.2) as port:
        probe = Probe(http_get=HTTPGetAction(port=port, path="/"), timeout_seconds=1)
        tried = await prober(FakeRuntime())(probe, subject(host="127.0.0.1"))
        while tried.stalled > 0.2:  # it was not, on a machine that has other things to do
            tried = await prober(FakeRuntime())(probe, subject(host="127.0.0.1"))
    assert (tried.answer.verdict, tried.tries) == (ProbeVerdict.FAILURE, 1)
