"""The files of the page, as a browser gets them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession

from tests.fakes.event_stream import page_session
from tests.fakes.glass import FakeAgent, fake_agent

FOLDER = Path(__file__).parents[3] / "src" / "glasslet" / "page"
MOST_BYTES = 200_000


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    async with fake_agent(tmp_path) as running:
        yield running


@pytest.fixture
async def session(agent: FakeAgent) -> AsyncIterator[ClientSession]:
    async with page_session(agent.root_dir) as session:
        yield session


async def test_the_document_comes_with_a_strict_policy(session: ClientSession) -> None:
    async with session.get("/glass/") as answer:
        assert answer.status == 200
        policy = answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy


async def test_every_address_in_the_document_is_relative_and_there(session: ClientSession) -> None:
    async with session.get("/glass/") as answer:
        addresses = re.findall(r'(?:href|src)="([^"#]+)"', await answer.text())
    assert "page.js" in addresses
    for address in addresses:
        assert re.fullmatch(r"[a-z0-9-]+\.[a-z]+", address)
        async with session.get(f"/glass/{address}") as answer:
            assert answer.status == 200, address


async def test_a_file_that_the_browser_has_is_not_sent_again(session: ClientSession) -> None:
    async with session.get("/glass/page.css") as first:
        etag = first.headers["ETag"]
    async with session.get("/glass/page.css", headers={"If-None-Match": etag}) as again:
        assert again.status == 304
        assert await again.read() == b""


async def test_all_files_together_are_small(session: ClientSession) -> None:
    total = 0
    for path in FOLDER.iterdir():
        async with session.get(f"/glass/{path.name}") as answer:
            assert answer.status == 200, path.name
            total += len(await answer.read())
    assert total < MOST_BYTES


@pytest.mark.parametrize("path", ["/glass/nothing.js", "/glass/page.py", "/glass/..%2fanswers.js", "/glass/py.typed"])
async def test_nothing_else_is_served(session: ClientSession, path: str) -> None:
    async with session.get(path) as answer:
        assert answer.status == 404


async def test_without_the_slash_the_browser_is_sent_to_the_folder(session: ClientSession) -> None:
    async with session.get("/glass", allow_redirects=False) as answer:
        assert answer.status == 308
        assert answer.headers["Location"] == "glass/"


async def test_a_request_of_another_page_changes_nothing(session: ClientSession) -> None:
    path = "/glass/v1/pods/default/web/exec"
    async with session.post(path, json={"command": ["id"]}, headers={"Origin": "https://elsewhere.test"}) as refused:
        assert refused.status == 403
        assert (await refused.json())["field"] == "X-Glasslet"
    async with session.post(path, json={"command": ["id"]}) as by_a_program:
        assert by_a_program.status == 404
