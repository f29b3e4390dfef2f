"""Connecting: every way in which there is no usable runtime has its own clear words."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from glasslet.runtime.cri import handshake
from glasslet.runtime.cri._generated import runtime_pb2
from glasslet.runtime.cri.connection import connect
from glasslet.runtime.cri.endpoint import EndpointError
from glasslet.runtime.cri.handshake import HandshakeFailed, SocketProblem
from tests.fakes.call_recording import CallMetrics, CallRecorder
from tests.fakes.cri_server import ScriptedCRI, Status


async def refused(endpoint: str, image_endpoint: str = "") -> HandshakeFailed:
    """How connecting fails."""
    with pytest.raises(HandshakeFailed) as failure:
        await connect(endpoint, image_endpoint, recorder=CallRecorder(), metrics=CallMetrics())
    return failure.value


@contextmanager
def nobody() -> Iterator[None]:
    """Runs the body without root's rights."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What answers is waited for, however busy the machine is."""
    monkeypatch.setattr(handshake, "ANSWER_WITHIN", 60.0)


async def test_a_healthy_runtime_says_who_it_is(tmp_path: Path) -> None:
    async with ScriptedCRI().serving(tmp_path / "s") as endpoint:
        connection = await connect(endpoint, recorder=CallRecorder(), metrics=CallMetrics())

        assert (connection.info.name, connection.info.version, connection.info.api_version) == (
            "scripted",
            "1.2.3",
            "v1",
        )
        await connection.close()


async def test_no_socket(tmp_path: Path) -> None:
    failure = await refused(f"unix://{tmp_path}/absent.sock")

    assert failure.problem is SocketProblem.NO_SOCKET
    assert failure.temporary
    assert str(failure) == f"no socket at {tmp_path}/absent.sock: is the container runtime running?"


async def test_a_file_is_no_socket(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    failure = await refused(str(tmp_path / "file"))

    assert (failure.problem, failure.temporary) == (SocketProblem.NOT_A_SOCKET, False)
    assert str(failure) == f"{tmp_path}/file is not a socket"


async def test_a_socket_left_by_a_dead_runtime(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "s"))

    failure = await refused(str(tmp_path / "s"))

    assert (failure.problem, failure.temporary) == (SocketProblem.NO_LISTENER, True)
    assert "the container runtime is not running" in str(failure)


@pytest.mark.parametrize("locked", ["folder", "socket"])
async def test_no_permission(locked: str) -> None:
    # Not in tmp_path: folders above that one are closed to others.
    with tempfile.TemporaryDirectory(prefix="glt-") as own, socket.socket(socket.AF_UNIX) as server:
        folder = Path(own)
        server.bind(str(folder / "s"))
        server.listen()
        (folder / "s").chmod(0o600)
        folder.chmod(0o700 if locked == "folder" else 0o755)

        with nobody():
            failure = await refused(str(folder / "s"))

    assert (failure.problem, failure.temporary) == (SocketProblem.PERMISSION, False)
    assert "run as root or as a member of the socket's group" in str(failure)


async def test_a_web_server_is_no_runtime(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_unix_server(answer, tmp_path / "s")
    async with server:
        failure = await refused(str(tmp_path / "s"))

    assert (failure.problem, failure.temporary) == (SocketProblem.NOT_GRPC, False)
    assert "does not speak gRPC" in str(failure)


async def test_a_server_that_hangs_up_is_no_runtime(tmp_path: Path) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_unix_server(hang_up, tmp_path / "s")
    async with server:
        assert (await refused(str(tmp_path / "s"))).problem is SocketProblem.NOT_GRPC


async def test_a_server_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "ANSWER_WITHIN", 0.1)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()

        failure = await refused(str(tmp_path / "s"))

    assert (failure.problem, failure.temporary) == (SocketProblem.NO_ANSWER, True)
    assert "did not answer within 0.1 s" in str(failure)


async def test_a_runtime_of_the_dropped_version(tmp_path: Path) -> None:
    """behaviours.md §30: "CRI version v1 only"."""
    async with ScriptedCRI(package="runtime.v1alpha2").serving(tmp_path / "s") as endpoint:
        failure = await refused(endpoint)

    assert (failure.problem, failure.temporary) == (SocketProblem.V1ALPHA2_ONLY, False)
    assert "serves only the CRI version v1alpha2; v1 is needed" in str(failure)


async def test_a_grpc_server_without_cri(tmp_path: Path) -> None:
    async with ScriptedCRI(package="somebody.else").serving(tmp_path / "s") as endpoint:
        failure = await refused(endpoint)

    assert (failure.problem, failure.temporary) == (SocketProblem.NOT_CRI, False)
    assert '"cri" must not be listed in disabled_plugins' in str(failure)


async def test_a_runtime_that_is_still_starting(tmp_path: Path) -> None:
    starting = Status(grpc.StatusCode.UNAVAILABLE, "server is not initialized yet")
    async with ScriptedCRI({"Version": starting}).serving(tmp_path / "s") as endpoint:
        failure = await refused(endpoint)

    assert (failure.problem, failure.temporary) == (SocketProblem.NO_ANSWER, True)
    assert "server is not initialized yet" in str(failure)


@pytest.mark.parametrize("field", ["version", "runtime_name", "runtime_version", "runtime_api_version"])
async def test_a_version_that_is_not_complete(tmp_path: Path, field: str) -> None:
    """behaviours.md §30: "At start Version (all four fields, version 0.1.0) and ImageFsInfo must answer"."""
    fields = {"version": "0.1.0", "runtime_name": "r", "runtime_version": "1", "runtime_api_version": "v1"}
    answer = runtime_pb2.VersionResponse(**{name: value for name, value in fields.items() if name != field})
    async with ScriptedCRI({"Version": answer}).serving(tmp_path / "s") as endpoint:
        failure = await refused(endpoint)

    assert failure.problem is SocketProblem.REFUSED
    assert f"lacks {field}" in str(failure)


async def test_the_first_question_names_the_version_we_speak(tmp_path: Path) -> None:
    server = ScriptedCRI()
    async with server.serving(tmp_path / "s") as endpoint:
        connection = await connect(endpoint, recorder=CallRecorder(), metrics=CallMetrics())
        await connection.close()

    assert server.requests["Version"] == [runtime_pb2.VersionRequest(version="0.1.0")]


async def test_images_may_live_elsewhere(tmp_path: Path) -> None:
    runtime, images = ScriptedCRI(), ScriptedCRI()
    async with runtime.serving(tmp_path / "r") as endpoint, images.serving(tmp_path / "i") as image_endpoint:
        connection = await connect(endpoint, image_endpoint, recorder=CallRecorder(), metrics=CallMetrics())
        await connection.images.image_filesystems()
        await connection.close()

    assert list(runtime.requests) == ["Version"]
    assert list(images.requests) == ["ImageFsInfo"]


async def test_an_image_service_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with ScriptedCRI().serving(tmp_path / "r") as endpoint:
        failure = await refused(endpoint, f"unix://{tmp_path}/absent")

    assert (failure.problem, str(tmp_path / "absent") in str(failure)) == (SocketProblem.NO_SOCKET, True)


async def test_a_bad_image_endpoint_is_named_by_its_setting(tmp_path: Path) -> None:
    async with ScriptedCRI().serving(tmp_path / "r") as endpoint:
        with pytest.raises(EndpointError, match="imageServiceEndpoint"):
            await connect(endpoint, "tcp://1.2.3.4", recorder=CallRecorder(), metrics=CallMetrics())
