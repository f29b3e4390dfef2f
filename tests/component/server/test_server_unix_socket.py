"""The local socket: only for its owner, only one agent, and a dead agent's socket is replaced."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest
from aiohttp import web

from glasslet.server.transport.unix_socket import SecondInstance, UnixSocketServer
from tests.fakes.http_client import Client


async def hello(_request: web.Request) -> web.Response:
    return web.Response(text="hello")


def server(path: Path) -> UnixSocketServer:
    return UnixSocketServer(path=str(path), routes=[web.get("/glass/v1/agent", hello)])


async def ask(path: Path) -> bytes:
    client = Client(*await asyncio.open_unix_connection(str(path)))
    answer = await client.ask("GET", "/glass/v1/agent")
    await client.close()
    return answer.body


async def test_routes_are_served_to_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "glasslet.sock"
    agent = server(path)
    await agent.start()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await ask(path) == b"hello"
    await agent.stop()
    assert not path.exists()


async def test_socket_of_a_dead_agent_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "glasslet.sock"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    agent = server(path)
    await agent.start()
    assert await ask(path) == b"hello"
    await agent.stop()


async def test_second_agent_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "glasslet.sock"
    first, second = server(path), server(path)
    await first.start()
    with pytest.raises(SecondInstance, match=f"process {os.getpid()}"):
        await second.start()
    await second.stop()
    assert await ask(path) == b"hello"
    await first.stop()
    await second.start()
    await second.stop()


async def test_path_too_long_for_a_socket_is_refused_with_the_limit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="107"):
        await server(tmp_path / ("x" * 120)).start()
