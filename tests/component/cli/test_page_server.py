"""`glasslet web`: only the person who has the token reads the page's data, and only that page changes something."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar

from glasslet.cli.page_server import PageServer
from tests.fakes.event_stream import live_stream
from tests.fakes.glass import FakeAgent, fake_agent

HEADER = {"X-Glasslet": "1"}


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    async with fake_agent(tmp_path) as running:
        yield running


@pytest.fixture
async def server(agent: FakeAgent) -> AsyncIterator[PageServer]:
    server = PageServer(agent.root_dir / "glasslet.sock")
    await server.start(0)
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture
async def browser(server: PageServer) -> AsyncIterator[ClientSession]:
    base = server.address.split("/glass/")[0]
    async with ClientSession(base, cookie_jar=CookieJar(unsafe=True)) as session:
        yield session


def token(server: PageServer) -> str:
    return server.address.split("#token=")[1]


async def sign_in(browser: ClientSession, server: PageServer) -> None:
    async with browser.post("/glass/session", json={"token": token(server)}, headers=HEADER) as answer:
        assert answer.status == 200
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/glass" in cookie


async def test_the_page_itself_needs_no_token_and_its_data_does(browser: ClientSession) -> None:
    statuses = []
    for path in ("/glass/", "/glass/v1/pods", "/glass/live"):
        async with browser.get(path) as answer:
            statuses.append(answer.status)
    assert statuses == [200, 401, 401]


async def test_the_token_gives_a_session(browser: ClientSession, server: PageServer) -> None:
    await sign_in(browser, server)
    async with browser.get("/glass/v1/pods") as answer:
        assert answer.status == 200
        assert await answer.json() == {"pods": []}


async def test_the_token_works_once(browser: ClientSession, server: PageServer) -> None:
    await sign_in(browser, server)
    async with browser.post("/glass/session", json={"token": token(server)}, headers=HEADER) as again:
        assert again.status == 401


@pytest.mark.parametrize("body", [b"{}", b"[]", b"not json", b'{"token": 7}', b'{"token": "\xc3\xa9"}'])
async def test_a_wrong_token_gives_nothing(browser: ClientSession, body: bytes) -> None:
    async with browser.post("/glass/session", data=body, headers=HEADER) as answer:
        assert answer.status in (400, 401)
        assert "Set-Cookie" not in answer.headers


async def test_the_token_has_256_bits(server: PageServer) -> None:
    assert re.fullmatch(r"[\w-]{43}", token(server))


@pytest.mark.parametrize("host", ["evil.test", "evil.test:80", "127.0.0.1", "127.0.0.1.evil.test:1"])
async def test_another_name_for_this_machine_is_refused(browser: ClientSession, host: str) -> None:
    async with browser.get("/glass/", headers={"Host": host}) as answer:
        assert answer.status == 403


async def test_another_page_is_refused(browser: ClientSession, server: PageServer) -> None:
    await sign_in(browser, server)
    async with browser.get("/glass/v1/pods", headers={"Origin": "http://evil.test"}) as answer:
        assert answer.status == 403


async def test_a_change_needs_the_header(browser: ClientSession, server: PageServer) -> None:
    await sign_in(browser, server)
    path = "/glass/v1/pods/default/web/exec"
    async with browser.post(path, json={}) as refused:
        assert refused.status == 403
    async with browser.post(path, json={}, headers=HEADER) as passed_on:
        assert passed_on.status == 404


async def test_the_live_stream_flows_through(browser: ClientSession, server: PageServer) -> None:
    await sign_in(browser, server)
    async with live_stream(browser, "view=pods") as stream:
        assert (await stream.next("state")).data["values"]["page"]["version"] == "0.0.1"


async def test_only_the_agents_page_is_reachable(browser: ClientSession, server: PageServer) -> None:
    await sign_in(browser, server)
    async with browser.get("/metrics") as answer:
        assert answer.status in (401, 404)


async def test_an_agent_that_is_away_is_an_answer(tmp_path: Path) -> None:
    server = PageServer(tmp_path / "glasslet.sock")
    await server.start(0)
    try:
        base = server.address.split("/glass/")[0]
        async with ClientSession(base) as session, session.get("/glass/") as answer:
            assert answer.status == 502
            assert "does not answer" in (await answer.json())["error"]
    finally:
        await server.stop()
