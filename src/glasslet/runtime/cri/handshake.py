"""The first contact with a runtime's socket. Each way to fail has a name and says what to do."""

from __future__ import annotations

import asyncio
import os
import stat
from enum import StrEnum

import grpc
from grpc.aio import AioRpcError, Channel

from glasslet.runtime.errors import RuntimeCallError, RuntimeTimeout, RuntimeUnavailable

ANSWER_WITHIN = 5.0
"""Seconds; what is slower than this does not serve."""


class SocketProblem(StrEnum):
    """The problem with the socket."""

    NO_SOCKET = "no_socket"
    NOT_A_SOCKET = "not_a_socket"
    PERMISSION = "permission"
    NO_LISTENER = "no_listener"
    NO_ANSWER = "no_answer"
    NOT_GRPC = "not_grpc"
    NOT_CRI = "not_cri"
    V1ALPHA2_ONLY = "v1alpha2_only"
    REFUSED = "refused"


_TEMPORARY = frozenset({SocketProblem.NO_SOCKET, SocketProblem.NO_LISTENER, SocketProblem.NO_ANSWER})


class HandshakeFailed(RuntimeCallError):
    """No usable runtime there. `temporary`: it may be on its way, so that trying again makes sense."""

    def __init__(self, problem: SocketProblem, message: str) -> None:
        super().__init__("Version", message, code=problem.value.upper())
        self.problem = problem

    @property
    def temporary(self) -> bool:
        """A runtime that starts or restarts looks like this."""
        return self.problem in _TEMPORARY

    def __str__(self) -> str:
        return self.message


async def knock(path: str) -> None:
    """Dials the socket once and checks that an HTTP/2 server answers. Raises HandshakeFailed."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise HandshakeFailed(
            SocketProblem.NO_SOCKET, f"no socket at {path}: is the container runtime running?"
        ) from None
    except PermissionError:
        raise HandshakeFailed(SocketProblem.PERMISSION, _not_allowed(path)) from None
    except OSError as error:
        raise HandshakeFailed(SocketProblem.NOT_A_SOCKET, f"{path} is not a socket: {error.strerror}") from error
    if not stat.S_ISSOCK(mode):
        raise HandshakeFailed(SocketProblem.NOT_A_SOCKET, f"{path} is not a socket")
    try:
        async with asyncio.timeout(ANSWER_WITHIN):
            speaks_http2 = await _speaks_http2(path)
    except PermissionError:
        raise HandshakeFailed(SocketProblem.PERMISSION, _not_allowed(path)) from None
    except ConnectionRefusedError:
        message = f"no process listens on {path} (connection refused): the container runtime is not running"
        raise HandshakeFailed(SocketProblem.NO_LISTENER, message) from None
    except TimeoutError:
        raise HandshakeFailed(SocketProblem.NO_ANSWER, _silent(path)) from None
    except OSError as error:
        raise HandshakeFailed(SocketProblem.NOT_GRPC, f"cannot talk to {path}: {error.strerror or error}") from error
    if not speaks_http2:
        raise HandshakeFailed(
            SocketProblem.NOT_GRPC, f"the server on {path} does not speak gRPC: it is no container runtime"
        )


_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_EMPTY_SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_FRAME_TYPE, _SETTINGS, _FRAME_HEADER = 3, 4, 9


async def _speaks_http2(path: str) -> bool:
    """An HTTP/2 server's first frame is SETTINGS, whatever else it serves."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(_PREFACE + _EMPTY_SETTINGS)
        await writer.drain()
        header = await reader.readexactly(_FRAME_HEADER)
        return header[_FRAME_TYPE] == _SETTINGS
    except (asyncio.IncompleteReadError, ConnectionResetError, BrokenPipeError):
        return False
    finally:
        writer.close()


def explain_no_service(path: str) -> HandshakeFailed:
    """For a gRPC server that does not know the CRI at all."""
    return HandshakeFailed(
        SocketProblem.NOT_CRI,
        f"the gRPC server on {path} serves no CRI: is this the runtime's socket? "
        'For containerd: "cri" must not be listed in disabled_plugins of its configuration',
    )


async def serves_v1alpha2(channel: Channel) -> bool:
    """Whether the dropped CRI version is served: its Version call, without any message definition."""
    call = channel.unary_unary("/runtime.v1alpha2.RuntimeService/Version")
    try:
        await call(b"", timeout=ANSWER_WITHIN)
    except AioRpcError as error:
        return error.code() is not grpc.StatusCode.UNIMPLEMENTED
    return True


def explain_v1alpha2(path: str) -> HandshakeFailed:
    """For runtimes from before CRI v1."""
    return HandshakeFailed(
        SocketProblem.V1ALPHA2_ONLY,
        f"the runtime on {path} serves only the CRI version v1alpha2; v1 is needed: "
        "containerd 1.6, CRI-O 1.20, or newer",
    )


def explain_failure(path: str, error: RuntimeCallError) -> HandshakeFailed:
    """For a runtime that is there and answers a first question with an error."""
    if isinstance(error, RuntimeUnavailable | RuntimeTimeout):
        return HandshakeFailed(SocketProblem.NO_ANSWER, f"the runtime on {path} is not ready: {error}")
    return HandshakeFailed(SocketProblem.REFUSED, f"the runtime on {path} cannot be used: {error}")


def _silent(path: str) -> str:
    return f"the server on {path} did not answer within {ANSWER_WITHIN:g} s"


def _not_allowed(path: str) -> str:
    return f"not allowed to use {path} (permission denied): run as root or as a member of the socket's group"
