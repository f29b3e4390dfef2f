"""Probes of real containers on a real containerd: what each kind says, and what comes of it.

Times are asserted on the recorded schedule: how late the agent itself was is part of each result.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.container import Container, ContainerPort
from glasslet.api.env import EnvVar
from glasslet.api.lifecycle import (
    ExecAction,
    GRPCAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    Probe,
    TCPSocketAction,
)
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.host.threads import HostThreads
from glasslet.pods.status.status_keeper import StatusServices
from glasslet.probes.kinds import ProbeKind
from glasslet.probes.manager import ProbeManager
from glasslet.probes.memory import ProbeMemory
from glasslet.probes.names import NameResolver
from glasslet.probes.prober import Prober
from glasslet.probes.results import ProbeResult, ProbeResults, ProbeVerdict
from glasslet.probes.settings import ProbeSettings
from glasslet.probes.worker import ProbeReport
from glasslet.runtime.cri.connection import CRIConnection, connect
from glasslet.status.builder import status_builder
from glasslet.telemetry.metrics.probes import ProbeMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry
from tests.builders.pod import container, pod, sidecar
from tests.component.probes.test_probe_grpc import Health, serving
from tests.fakes.containerd import PrivateContainerd, Silent
from tests.fakes.waits import WaitLog
from tests.integration.test_pods_containerd import RealAgent

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

LIVENESS, READINESS, STARTUP = ProbeKind.LIVENESS, ProbeKind.READINESS, ProbeKind.STARTUP
WAIT = "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"
HTTPD = f"mkdir -p /www/cgi-bin; echo ok > /www/ready; httpd -p 8080 -h /www; {WAIT}"
MARGIN = 0.3
"""Seconds; of a busy machine, beyond what the results know of."""


class ProbedAgent(RealAgent):
    """The pod side with real probes. Its luck is such that the random first pause is none."""

    def status_services(self, root: Path) -> StatusServices:
        self.results = ProbeResults(kept=100)
        threads = HostThreads(recorder=self.record)
        self.memory = ProbeMemory(
            path=str(root / "probes"), passing=self.results.passing, threads=threads, recorder=self.record
        )
        self.probes = ProbeManager(
            probing=Prober(
                runtime=self.runtime,
                resolve=NameResolver(threads=threads),
                recorder=self.record,
                settings=ProbeSettings(),
            ),
            results=self.results,
            memory=self.memory,
            report=ProbeReport(
                recorder=self.record, events=self.events, metrics=ProbeMetrics(MetricRegistry()), clock=self.clock
            ),
            on_change=self.wakes.probed,
            draw=lambda: 0.0,
        )
        return StatusServices(
            build=status_builder("containerd"),
            follower=self.probes,
            publish=self.statuses.publish,
            probes=self.probes.outcomes,
            host_ips=lambda: (),
            finished=self.statuses.finish,
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run())
            group.create_task(self.probes.run())
            group.create_task(self.memory.run())

    def last(self, one: Pod, kind: ProbeKind = READINESS, name: str = "main") -> list[ProbeResult]:
        """The results of one probe."""
        return [r for r in self.probes.last(pod_ref(one)) if (r.kind, r.container) == (kind, name)]

    def readiness_told(self, one: Pod) -> list[bool]:
        """Each change of the pod's readiness, in order."""
        told = [
            any(c.type == "Ready" and c.status == "True" for c in status.conditions)
            for status in self.statuses.of(one.metadata.uid)
        ]
        return [value for value, _ in itertools.groupby(told)]

    def starts(self, one: Pod, name: str = "main") -> int:
        """How often a container was started."""
        return sum(e.message == f"Started container {name}" for e in self.events.of("Started"))

    def messages(self, reason: str) -> list[str]:
        """The messages of all events of a reason."""
        return [event.message for event in self.events.of(reason)]

    async def run_in(self, one: Pod, command: str, name: str = "main") -> None:
        """Runs a shell command in the newest instance."""
        observed = self.observed.get(PodUID(one.metadata.uid))
        newest = observed.newest(name) if observed else None
        assert newest is not None
        result = await self.runtime.exec_sync(newest.id, ("sh", "-c", command), 100)
        assert result.exit_code == 0, result.stderr


@pytest.fixture
async def connection(containerd: PrivateContainerd) -> AsyncIterator[CRIConnection]:
    opened = await connect(containerd.endpoint, recorder=WaitLog(), metrics=Silent())
    yield opened
    await opened.close()
    containerd.remove_all_pods()


@asynccontextmanager
async def probed_agent(connection: CRIConnection, root: Path) -> AsyncIterator[ProbedAgent]:
    agent = ProbedAgent(connection, root)
    task = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.1)


def probe(handler: ExecAction | HTTPGetAction | TCPSocketAction | GRPCAction, **numbers: int) -> Probe:
    """A probe each second, with time enough on a machine that has none."""
    name = {ExecAction: "exec", HTTPGetAction: "http_get", TCPSocketAction: "tcp_socket", GRPCAction: "grpc"}
    defaults = {"timeout_seconds": 30, "period_seconds": 1, "success_threshold": 1, "failure_threshold": 3}
    fields: dict[str, Any] = {name[type(handler)]: handler, **defaults, **numbers}
    return Probe(**fields)


def http(path: str = "/ready", port: int | str = 8080, **numbers: int) -> Probe:
    return probe(HTTPGetAction(path=path, port=port, scheme="HTTP"), **numbers)


def shell(command: str, **numbers: int) -> Probe:
    return probe(ExecAction(command=("sh", "-c", command)), **numbers)


def main(command: str = WAIT, name: str = "main", **fields: object) -> Container:
    return container(name, command=("sh", "-c", command), **fields)


def one_pod(*containers: Container, name: str, **fields: Any) -> Pod:
    return pod(*containers, name=name, uid=f"uid-{name}", termination_grace_period_seconds=2, **fields)


def at_ticks(results: list[ProbeResult]) -> list[ProbeResult]:
    """Without those that began as soon as the one before had ended: its time was longer than the period."""
    followed = itertools.pairwise(results)
    return results[:1] + [b for a, b in followed if (b.began - a.began).total_seconds() - a.total > MARGIN]


def assert_on_schedule(results: list[ProbeResult], period: float) -> None:
    """Each probe began at its tick, but for what the agent itself was late; on a busy machine ticks are left out."""
    assert len(results) >= 3
    for before, after in itertools.pairwise(results):
        gap = (after.began - before.began).total_seconds()
        ticks = (gap - after.late + before.late) / period
        assert ticks > 0.5, (gap, before, after)
        assert abs(ticks - round(ticks)) * period < MARGIN, (gap, before, after)


async def test_http_readiness_follows_the_server(connection: CRIConnection, tmp_path: Path) -> None:
    one = one_pod(
        main(HTTPD, readiness_probe=http(port="web"), ports=(ContainerPort(name="web", container_port=8080),)),
        name="http",
    )
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.ready("uid-http"))

        def passed_at_ticks() -> list[ProbeResult]:
            return [result for result in at_ticks(agent.last(one)) if result.verdict is ProbeVerdict.SUCCESS]

        await agent.until(lambda: len(passed_at_ticks()) >= 4)
        passed = passed_at_ticks()
        assert_on_schedule(passed, 1.0)
        assert all(result.parts.connect is not None and result.parts.first_byte is not None for result in passed)

        await agent.run_in(one, "rm /www/ready")
        await agent.until(lambda: not agent.ready("uid-http"))
        failed = [result for result in agent.last(one) if result.began > passed[-1].began]
        failed = [result for result in failed if result.verdict is ProbeVerdict.FAILURE]
        assert [result.note for result in failed[:3]] == ["status 404"] * 3
        assert agent.messages("Unhealthy")[-1] == "Readiness probe failed: HTTP probe failed with statuscode: 404"

        await agent.run_in(one, "echo ok > /www/ready")
        await agent.until(lambda: agent.ready("uid-http"))
        assert agent.readiness_told(one) == [False, True, False, True]
        assert agent.starts(one) == 1


async def test_http_redirects_of_a_real_server(connection: CRIConnection, tmp_path: Path) -> None:
    script = '#!/bin/sh\\nprintf "Status: 302 Found\\\\r\\\\nLocation: $QUERY_STRING\\\\r\\\\n\\\\r\\\\nmoved"'
    server = f"mkdir -p /www/cgi-bin; printf '{script}' > /www/cgi-bin/to; chmod +x /www/cgi-bin/to; {HTTPD}"
    one = one_pod(
        main(
            server,
            readiness_probe=http("/cgi-bin/to?/ready"),
            liveness_probe=http("/cgi-bin/to?http://elsewhere.test/", failure_threshold=1000),
        ),
        name="redirects",
    )
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.ready("uid-redirects"))
        await agent.until(lambda: agent.messages("ProbeWarning"))
        assert agent.messages("ProbeWarning")[0] == (
            "Liveness probe warning: Probe terminated redirects, Response body: moved"
        )
        assert [result.note for result in agent.last(one)][-1] == "status 200"


async def test_a_tcp_liveness_restarts_what_does_not_listen_any_more(connection: CRIConnection, tmp_path: Path) -> None:
    server = f"httpd -p 8080 -h /tmp; {WAIT}"
    listens = TCPSocketAction(port=8080)
    spec = main(
        server,
        startup_probe=probe(listens, failure_threshold=1000),
        liveness_probe=probe(listens, failure_threshold=2),
    )
    one = one_pod(spec, name="tcp")
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: len(agent.last(one, LIVENESS)) >= 3)
        assert agent.last(one, LIVENESS)[-1].note == "connected"
        (first,) = {result.instance for result in agent.last(one, LIVENESS)}
        await agent.run_in(one, "killall httpd")
        await agent.until(lambda: agent.starts(one) == 2)
        of_first = [result for result in agent.last(one, LIVENESS) if result.instance == first]
        failed = [result for result in of_first[-3:] if result.verdict is ProbeVerdict.FAILURE]
        assert len(failed) == 2, "exactly the threshold, then the probe rests until the next instance"
        assert "connect: connection refused" in failed[0].note
        assert agent.messages("Killing") == ["Container main failed liveness probe, will be restarted"]
        await agent.until(lambda: len({r.instance for r in agent.last(one, LIVENESS)}) == 2)


async def test_exec_probes_run_in_the_container(connection: CRIConnection, tmp_path: Path) -> None:
    check = 'echo "out $(PLACE)"; echo err >&2; test -f $(PLACE)'
    one = one_pod(main(readiness_probe=shell(check), env=(EnvVar(name="PLACE", value="/tmp/ready"),)), name="exec")
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: len(agent.messages("Unhealthy")) >= 3)
        assert agent.messages("Unhealthy")[0] == "Readiness probe failed: out /tmp/ready\nerr\n"
        assert agent.last(one)[0].note == "exit code 1"
        await agent.run_in(one, "touch /tmp/ready")
        await agent.until(lambda: agent.ready("uid-exec"))


async def test_an_exec_probe_that_takes_too_long_fails(connection: CRIConnection, tmp_path: Path) -> None:
    one = one_pod(main(readiness_probe=shell("sleep 1000", timeout_seconds=1)), name="slow")
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.messages("Unhealthy"))
        assert agent.messages("Unhealthy")[0] == (
            'Readiness probe failed: command timed out: "sh -c sleep 1000" timed out after 1s'
        )
        assert 1.0 <= agent.last(one)[0].total < 150.0


async def test_a_command_that_is_not_there_fails_the_probe(connection: CRIConnection, tmp_path: Path) -> None:
    """Whether that is a failure or an error is the runtime's word: containerd cannot start it, so it does not count."""
    one = one_pod(main(readiness_probe=probe(ExecAction(command=("/no/such/command",)))), name="missing")
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.messages("Unhealthy"))
        assert agent.messages("Unhealthy")[0].startswith("Readiness probe errored and resulted in unknown state: ")
        assert agent.last(one)[0].tries == 3
        assert not agent.ready("uid-missing")


async def test_grpc_readiness_of_a_pod_on_the_nodes_network(connection: CRIConnection, tmp_path: Path) -> None:
    health = Health(_=2, web=1)
    async with serving(health) as port, probed_agent(connection, tmp_path) as agent:
        handler = GRPCAction(port=port, service="web")
        one = one_pod(main(readiness_probe=probe(handler)), name="grpc", host_network=True)
        agent.add(one)
        await agent.until(lambda: agent.ready("uid-grpc"))
        health.statuses["web"] = 2
        await agent.until(lambda: not agent.ready("uid-grpc"))
        message = 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")'
        assert agent.messages("Unhealthy")[-1] == message


async def test_startup_holds_back_what_would_kill(connection: CRIConnection, tmp_path: Path) -> None:
    """Liveness fails from the first moment, but only counts once the container has started."""
    one = one_pod(
        main(
            startup_probe=shell("test -f /tmp/started", failure_threshold=1000, period_seconds=2),
            liveness_probe=shell("test -f /tmp/alive", failure_threshold=1, termination_grace_period_seconds=1),
            readiness_probe=shell("true"),
        ),
        name="startup",
    )
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: len(at_ticks(agent.last(one, STARTUP))) >= 3)
        assert_on_schedule(at_ticks(agent.last(one, STARTUP)), 2.0)
        assert not agent.last(one, LIVENESS)
        assert not agent.last(one)
        assert not agent.ready("uid-startup")
        await agent.run_in(one, "touch /tmp/alive /tmp/started")
        await agent.until(lambda: agent.ready("uid-startup"))
        await agent.run_in(one, "rm /tmp/alive")
        await agent.until(lambda: agent.starts(one) == 2)
        assert len(agent.messages("Killing")) == 1


async def test_a_startup_probe_that_never_passes_restarts(connection: CRIConnection, tmp_path: Path) -> None:
    one = one_pod(main(startup_probe=shell("false", failure_threshold=2)), name="never")
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.starts(one) == 2)
        assert agent.messages("Killing") == ["Container main failed startup probe, will be restarted"]
        first = agent.last(one, STARTUP)[0].instance
        assert len([r for r in agent.last(one, STARTUP) if r.instance == first]) == 2


async def test_a_sidecar_with_a_startup_probe_comes_first(connection: CRIConnection, tmp_path: Path) -> None:
    side = sidecar("side", command=("sh", "-c", WAIT), startup_probe=shell("test -f /tmp/go", failure_threshold=1000))
    one = one_pod(main(), init=(side,), name="sidecar")
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: len(agent.last(one, STARTUP, "side")) >= 2)
        assert agent.starts(one) == 0
        await agent.run_in(one, "touch /tmp/go", "side")
        await agent.until(lambda: agent.ready("uid-sidecar"))
        assert agent.starts(one) == 1


async def test_the_initial_delay_is_kept(connection: CRIConnection, tmp_path: Path) -> None:
    one = one_pod(main(readiness_probe=shell("true", initial_delay_seconds=3)), name="delay")
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.ready("uid-delay"))
        observed = agent.observed.get(PodUID("uid-delay"))
        assert observed is not None
        (instance,) = observed.containers
        assert instance.started_at is not None
        # Whole seconds count: the start is rounded down.
        started = instance.started_at.replace(microsecond=0)
        assert (agent.last(one)[0].began - started).total_seconds() >= 3.0


async def test_readiness_decides_while_a_pod_ends(connection: CRIConnection, tmp_path: Path) -> None:
    until_told = ExecAction(command=("sh", "-c", "while ! test -f /tmp/end; do sleep 0.1; done"))
    hook = Lifecycle(pre_stop=LifecycleHandler(exec=until_told))
    lives = http(failure_threshold=1000)
    spec = main(HTTPD, readiness_probe=http(failure_threshold=1), liveness_probe=lives, lifecycle=hook)
    one = pod(spec, name="ending", uid="uid-ending", termination_grace_period_seconds=200)
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.ready("uid-ending"))
        agent.remove(one)
        await agent.until(lambda: agent.messages("Killing"))
        count = len(agent.last(one, LIVENESS))
        assert agent.ready("uid-ending"), "asked to end, and still serving"
        await agent.run_in(one, "rm /www/ready")
        await agent.until(lambda: not agent.ready("uid-ending"))
        assert len(agent.last(one, LIVENESS)) <= count
        await agent.run_in(one, "touch /tmp/end")
        await agent.until(lambda: agent.gone("uid-ending"))
        await agent.until(lambda: not agent.last(one))


async def test_readiness_survives_the_agent(connection: CRIConnection, tmp_path: Path) -> None:
    one = one_pod(main(HTTPD, readiness_probe=http(), startup_probe=http(failure_threshold=1000)), name="survivor")
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.ready("uid-survivor"))
    async with probed_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: len(agent.last(one)) >= 3)
        assert agent.readiness_told(one) == [True], "no flap, not even for a moment"
        assert not agent.last(one, STARTUP), "what has started need not start again"
        assert agent.starts(one) == 0
        await agent.run_in(one, "rm /www/ready")
        await agent.until(lambda: agent.readiness_told(one) == [True, False])
