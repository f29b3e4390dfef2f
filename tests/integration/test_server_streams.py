"""Exec, port-forward and logs through the HTTPS server's handlers to a real containerd."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from glasslet.api.container import Container
from glasslet.api.meta import ObjectMeta
from glasslet.api.object import ContainerID, SandboxID
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.pod_status import ContainerState, ContainerStateRunning, ContainerStatus, PodStatus
from glasslet.runtime.cri.connection import CRIConnection, connect
from glasslet.runtime.logs.container_logs import ContainerLogs
from glasslet.server.protocols import SessionStreams
from glasslet.server.routes import Sources
from tests.component.server_fixture import serving
from tests.contract.worlds import Behaviour, World, shell
from tests.fakes.call_recording import CallMetrics, CallRecorder
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.programs import Program
from tests.fakes.server_sources import FakeNode, FakePods

pytestmark = pytest.mark.containerd

SERVES = Behaviour(
    shell("for n in 1 2 3; do echo line $n; done; echo served > /index.html; httpd -f -p 8080 -h /"), Program()
)
STDOUT, STDERR, ERROR = 1, 2, 3


class Sessions:
    """Exec and port-forward of one container of the runtime."""

    def __init__(self, connection: CRIConnection, sandbox: SandboxID, container: ContainerID) -> None:
        self._runtime, self._sandbox, self._container = connection.runtime, sandbox, container

    async def exec_url(self, pod: Pod, container: str, command: Sequence[str], streams: SessionStreams) -> str:
        return await self._runtime.exec_url(
            self._container,
            tuple(command),
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            tty=streams.tty,
        )

    async def attach_url(self, pod: Pod, container: str, streams: SessionStreams) -> str:
        return await self._runtime.attach_url(
            self._container, stdin=streams.stdin, stdout=streams.stdout, stderr=streams.stderr, tty=streams.tty
        )

    async def port_forward_url(self, pod: Pod, ports: Sequence[int]) -> str:
        return await self._runtime.port_forward_url(self._sandbox, tuple(ports))

    async def run(self, pod: Pod, container: str, command: Sequence[str]) -> bytes:
        return (await self._runtime.exec_sync(self._container, tuple(command), timeout=100)).stdout


class Node(FakeNode):
    """A node with one real pod."""

    sessions: Sessions
    real_logs: ContainerLogs

    def sources(self) -> Sources:
        made = super().sources()
        return Sources(
            pods=made.pods,
            logs=self.real_logs,
            configz=made.configz,
            metrics=made.metrics,
            checks=made.checks,
            streams=self.sessions,
        )


@asynccontextmanager
async def pod_behind_a_server(containerd: PrivateContainerd, folder: Path) -> AsyncIterator[str]:
    """The server's address; its pod is default/web with container main."""
    connection = await connect(containerd.endpoint, recorder=CallRecorder(), metrics=CallMetrics())
    world = World(connection.runtime, connection.images, folder, containerd=containerd)
    try:
        sandbox, spec, container = await world.run(SERVES)
        observed = await world.read(spec.uid)
        running = ContainerState(running=ContainerStateRunning(started_at=datetime.now(UTC)))
        status = ContainerStatus(
            name="main",
            ready=True,
            restart_count=0,
            image="",
            image_id="",
            state=running,
            container_id=f"containerd://{container}",
        )
        pod = Pod(
            metadata=ObjectMeta(name="web", namespace="default", uid=spec.uid),
            spec=PodSpec(containers=(Container(name="main"),)),
            status=PodStatus(container_statuses=(status,)),
        )
        node = Node(pods=FakePods(desired=[pod]))
        node.sessions = Sessions(connection, sandbox, container)
        node.real_logs = ContainerLogs(observed=lambda uid: observed, now=lambda: datetime.now(UTC))
        async with serving(node) as server:
            yield f"http://127.0.0.1:{server.server.port}"
        await connection.runtime.stop_sandbox(sandbox)
        await connection.runtime.remove_sandbox(sandbox)
    finally:
        await connection.close()


async def execute(
    address: str, command: Sequence[str], *, stdin: bytes = b"", spoke: asyncio.Event | None = None
) -> dict[int, bytes]:
    """Runs a command as kubectl would over WebSocket; output by channel. `spoke` is set once there is some."""
    query = "&".join(f"command={part}" for part in command) + f"&output=1&error=1&input={int(bool(stdin))}"
    got = {STDOUT: b"", STDERR: b"", ERROR: b""}
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{address}/exec/default/web/main?{query}", protocols=("v4.channel.k8s.io",)) as socket,
    ):
        if stdin:
            await socket.send_bytes(b"\0" + stdin)
        async for message in socket:
            got[message.data[0]] = got.get(message.data[0], b"") + message.data[1:]
            if spoke is not None and got[STDOUT]:
                spoke.set()
        got[-1] = str(socket.close_code).encode()
    return got


async def test_exec_gives_both_outputs_and_the_exit_code(containerd: PrivateContainerd, tmp_path: Path) -> None:
    async with pod_behind_a_server(containerd, tmp_path) as address:
        got = await execute(address, ["sh", "-c", "echo+out;echo+err+>%262;exit+7"])
    assert (got[STDOUT], got[STDERR]) == (b"out\n", b"err\n")
    status = json.loads(got[ERROR])
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


async def test_exec_that_succeeds_says_so(containerd: PrivateContainerd, tmp_path: Path) -> None:
    async with pod_behind_a_server(containerd, tmp_path) as address:
        got = await execute(address, ["true"])
    assert json.loads(got[ERROR])["status"] == "Success"


async def test_exec_takes_input(containerd: PrivateContainerd, tmp_path: Path) -> None:
    async with pod_behind_a_server(containerd, tmp_path) as address:
        got = await execute(address, ["head", "-c", "5"], stdin=b"hello and more")
    assert got[STDOUT] == b"hello"


async def test_runtime_that_dies_during_a_command_is_no_success(containerd: PrivateContainerd, tmp_path: Path) -> None:
    async with pod_behind_a_server(containerd, tmp_path) as address:
        spoke = asyncio.Event()
        running = asyncio.ensure_future(execute(address, ["sh", "-c", "echo+begun;sleep+600"], spoke=spoke))
        async with asyncio.timeout(60):
            await spoke.wait()
        containerd.kill()
        try:
            async with asyncio.timeout(60):
                got = await running
        finally:
            containerd.start()
    assert got[STDOUT] == b"begun\n"
    assert got[ERROR] == b""
    assert got[-1] == b"1011"


async def forwarded(address: str) -> bytes:
    """What the pod's port 8080 sends until either side ends it."""
    data = b""
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(
            f"{address}/portForward/default/web?port=8080", protocols=("v4.channel.k8s.io",), max_msg_size=0
        ) as socket,
    ):
        await socket.send_bytes(b"\0GET /index.html HTTP/1.0\r\n\r\n")
        async for message in socket:
            if message.data[0] == 0:
                data += message.data[1:]
            if b"served" in data:
                break
    return data


async def test_port_forward_reaches_the_pod(containerd: PrivateContainerd, tmp_path: Path) -> None:
    async with pod_behind_a_server(containerd, tmp_path) as address, asyncio.timeout(60):
        while b"served" not in (data := await forwarded(address)):
            await asyncio.sleep(0.1)  # nobody listens in the pod yet
    assert b"200 OK" in data


async def logs(http: aiohttp.ClientSession, address: str) -> str:
    """The last two lines."""
    async with http.get(f"{address}/containerLogs/default/web/main?tailLines=2") as answer:
        assert answer.status == 200
        return await answer.text()


async def test_logs_are_those_of_the_container(containerd: PrivateContainerd, tmp_path: Path) -> None:
    async with pod_behind_a_server(containerd, tmp_path) as address, aiohttp.ClientSession() as http:
        async with asyncio.timeout(60):
            while "line 3\n" not in (said := await logs(http, address)):
                await asyncio.sleep(0.05)  # the container has only just begun
        assert said == "line 2\nline 3\n"
        async with http.get(f"{address}/containerLogs/default/web/main?previous=true") as answer:
            assert answer.status == 400
            assert await answer.text() == 'previous terminated container "main" in pod "web" not found'
        async with http.post(f"{address}/run/default/web/main?cmd=echo%20hi") as answer:
            assert await answer.text() == "hi\n"
