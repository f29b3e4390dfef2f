"""Requests to the API server through the proxy of the environment."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from glasslet.api.pod import Pod
from glasslet.assembly.foundation import Connector
from glasslet.concurrency.clock import SystemClock
from glasslet.kubeapi.errors import Unavailable
from glasslet.kubeapi.kubeconfig import Kubeconfig
from glasslet.record.store import Record
from tests.fakes.request_metrics import Uncounted

PATH = "/api/v1/namespaces/default/pods/web"


class Proxy:
    """Refuses everything and keeps the heads of requests."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.port = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode())
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()


async def ask(server: str, proxy_url: str = "") -> str:
    """The error of one request."""
    connector = Connector(recorder=Record(), clock=SystemClock(), metrics=Uncounted())  # type: ignore[arg-type]
    client = connector.client(Kubeconfig(origin="test", server=server, token="t0ken", proxy_url=proxy_url))
    try:
        with pytest.raises(Exception) as error:  # noqa: PT011 - refused by the proxy or by the server
            await client.get(PATH, Pod)
        return str(error.value)
    finally:
        await client.close()


async def test_the_environment_s_proxy_opens_a_tunnel_to_the_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Proxy()
    async with proxy.serving():
        monkeypatch.setenv("HTTPS_PROXY", f"http://ann:hunter2@127.0.0.1:{proxy.port}")
        text = await ask("https://api.example.com:6443")
    assert proxy.heads[0].startswith("CONNECT api.example.com:6443 HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {b64encode(b'ann:hunter2').decode()}" in proxy.heads[0]
    assert "t0ken" not in proxy.heads[0]
    assert "hunter2" not in text


async def test_a_server_that_no_proxy_names_is_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Proxy()
    async with proxy.serving():
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "192.0.2.0/24")
        connector = Connector(recorder=Record(), clock=SystemClock(), metrics=Uncounted())  # type: ignore[arg-type]
        client = connector.client(Kubeconfig(origin="test", server="https://192.0.2.1:6443"), timeout=0.3)
        with pytest.raises(Unavailable):
            await client.get(PATH, Pod)
        await client.close()
    assert proxy.heads == []


async def test_the_kubeconfig_s_proxy_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Proxy()
    async with proxy.serving():
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
        await ask("https://api.example.com:6443", proxy_url=f"http://127.0.0.1:{proxy.port}")
    assert len(proxy.heads) == 1
