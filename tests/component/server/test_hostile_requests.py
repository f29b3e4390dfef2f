"""Requests that mean two things, paths in disguise, and hosts that are not ours: refused, or read as they are
authorized."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path

import pytest

from glasslet.server import healthz
from glasslet.server.access.authentication import TokenAuthenticator
from glasslet.server.access.authorization import subresources
from glasslet.server.access.users import Attributes, User
from glasslet.server.protocols import PING
from glasslet.server.routes import RouteSwitches
from glasslet.server.transport.limits import ConnectionLimits
from tests.component.server_fixture import Running, access, serving
from tests.fakes.server_sources import FakeNode

HOST = b"Host: node\r\n"
INNER = b"GET /containerLogs/default/web/main HTTP/1.1\r\nHost: node\r\n\r\n"
CHUNKED = b"5\r\nhello\r\n0\r\n\r\n"


def post(*fields: bytes, body: bytes = b"") -> bytes:
    return b"POST /nothing HTTP/1.1\r\n" + HOST + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + body


AMBIGUOUS = {
    "content-length and transfer-encoding": post(
        b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + INNER
    ),
    "transfer-encoding and content-length": post(
        b"Transfer-Encoding: chunked", b"Content-Length: 5", body=b"0\r\n\r\n" + INNER
    ),
    "two lengths": post(b"Content-Length: 0", b"Content-Length: %d" % len(INNER), body=INNER),
    "two lengths in one field": post(b"Content-Length: 0, %d" % len(INNER), body=INNER),
    "signed length": post(b"Content-Length: +0", body=INNER),
    "negative length": post(b"Content-Length: -1", body=INNER),
    "length in hexadecimal": post(b"Content-Length: 0x0", body=INNER),
    "length with digits of another script": post("Content-Length: \u0660".encode(), body=INNER),
    "length of 5000 digits": post(b"Content-Length: " + b"9" * 5000, body=INNER),
    "space before the colon": post(b"Content-Length : %d" % len(INNER), body=INNER),
    "folded field": post(b"Transfer-Encoding:\r\n chunked", b"Content-Length: 0", body=INNER),
    "unknown transfer-encoding": post(b"Transfer-Encoding: xchunked", body=INNER),
    "transfer-encoding twice": post(
        b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked", b"Content-Length: 5", body=b"0\r\n\r\n" + INNER
    ),
    "transfer-encoding after a tab and a null": post(b"Transfer-Encoding:\t\x00chunked", body=INNER),
    "bare line feeds": b"POST /nothing HTTP/1.1\nHost: node\nContent-Length: 0\n\n" + INNER,
    "bare carriage return in a field": post(b"X: a\rTransfer-Encoding: chunked", body=INNER),
    "null in a field": post(b"X: a\x00b", body=INNER),
    "null in a name": post(b"X\x00: a", body=INNER),
    "field without a name": post(b": a", body=INNER),
    "field without a colon": post(b"nothing", body=INNER),
    "chunk size with a sign": post(b"Transfer-Encoding: chunked", body=b"-1\r\n" + INNER),
    "chunk size of 17 digits": post(b"Transfer-Encoding: chunked", body=b"1" + b"0" * 16 + b"\r\n" + INNER),
    "chunk without its end": post(b"Transfer-Encoding: chunked", body=b"5\r\nhelloX0\r\n\r\n" + INNER),
    "spaces in the target": b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n" + INNER,
    "no version": b"GET /nothing\r\n" + HOST + b"\r\n" + INNER,
    "version 3": b"GET /nothing HTTP/3.0\r\n" + HOST + b"\r\n" + INNER,
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + INNER,
    "method in lower case": b"get /nothing HTTP/1.1\r\n" + HOST + b"\r\n" + INNER,
    "unknown method": b"SMUGGLE /nothing HTTP/1.1\r\n" + HOST + b"\r\n" + INNER,
}


QUICK = ConnectionLimits(idle_seconds=0.3, header_seconds=5.0, shutdown_seconds=0.1)


async def statuses(running: Running, sent: bytes) -> list[int]:
    """Sends bytes; the statuses that come back until the server closes the connection, or for three seconds."""
    client = await running.client()
    client.writer.write(sent)
    found = []
    try:
        async with asyncio.timeout(3):
            while True:
                found.append((await client.answer()).status)
    except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
        return found


@pytest.mark.parametrize("form", AMBIGUOUS)
async def test_ambiguous_request_is_refused_and_nothing_behind_it_is_answered(form: str) -> None:
    async with serving(limits=QUICK) as running:
        found = await statuses(running, AMBIGUOUS[form])
    assert found == [400]
    assert running.node.logs.asked == []


@pytest.mark.parametrize(
    "body",
    [b"5;name=value\r\nhello\r\n0\r\n\r\n", b'5;a="\r\n"\r\nhello\r\n0\r\n\r\n', b"5;" + b"x" * 70_000 + b"\r\n"],
)
async def test_chunk_extensions_hide_no_request(body: bytes) -> None:
    async with serving(limits=QUICK) as running:
        sent = post(b"Transfer-Encoding: chunked", body=body + post(b"Content-Length: 0"))
        found = await statuses(running, sent)
    assert set(found) <= {400, 404, 431}
    assert len(found) <= 2
    assert running.node.logs.asked == []


async def test_chunked_request_after_another_is_read_as_one() -> None:
    async with serving(limits=QUICK) as running:
        found = await statuses(running, post(b"Transfer-Encoding: chunked", body=CHUNKED) + INNER)
    assert found == [404, 200]


@pytest.mark.parametrize(
    "sent",
    [
        b"CONNECT node:443 HTTP/1.1\r\nHost: node:443\r\n\r\n",
        b"CONNECT /pods HTTP/1.1\r\nHost: node\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: node\r\n\r\n",
        b"TRACE /pods HTTP/1.1\r\nHost: node\r\nSecret: mirror\r\n\r\n",
    ],
)
async def test_methods_of_proxies_open_nothing(sent: bytes) -> None:
    async with serving(limits=QUICK) as running:
        found = await statuses(running, sent)
    assert found
    assert all(status in (301, 400, 404, 405) for status in found)


async def test_absolute_form_is_the_path_alone_and_needs_the_same_right() -> None:
    for target in ("http://evil.example/pods", "https://node:10250/pods", "http://user:pass@evil.example/pods"):
        async with serving(who=access()) as running:
            assert (await (await running.client()).ask("GET", target)).status in (400, 401)
        async with serving(limits=QUICK) as running:
            assert (await (await running.client()).ask("GET", target)).status in (200, 400)


@pytest.mark.parametrize("host", ["evil.example", "evil.example/pods", "a@b", "[::1", "x" * 5000, "", "\x7f"])
async def test_host_header_is_neither_followed_nor_repeated(host: str) -> None:
    async with serving() as running:
        client = await running.client()
        client.writer.write(f"GET /logs HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1"))
        answer = await client.answer()
    assert answer.status in (301, 400)
    assert answer.headers.get("location", "/logs/") == "/logs/"


class OnlyHealthz:
    """Allows nodes/healthz."""

    def __init__(self) -> None:
        self.asked: list[Attributes] = []

    async def allows(self, attributes: Attributes) -> bool:
        self.asked.append(attributes)
        return attributes.subresource == "healthz"


DISGUISES = [
    *(
        "/healthz/../pods",
        "/healthz/%2e%2e/pods",
        "/healthz/%2E%2E%2Fpods",
        "/healthz%2f..%2fpods",
        "/healthz/..%2fpods",
    ),
    *(
        "/healthz/..;/pods",
        "/healthz//pods",
        "//pods",
        "/./pods",
        "/pods/",
        "/pods//",
        "/pods%2f",
        "/%70ods",
        "/pods%00",
    ),
    *("/pods%20", "/pods?/healthz", "/pods#/healthz", "/pods%23/healthz", "/pods;/healthz", "/healthz%00/pods"),
    *("/healthz/%252e%252e/pods", "/healthz/%c0%ae%c0%ae/pods", "/healthz/%ff", "/PODS", "/healthz\\..\\pods"),
    *("/healthz/%uff0e%uff0e/pods", "/healthz/..%c0%afpods", "/healthz/%e2%80%a4%e2%80%a4/pods", "/pods%E2%80%8B"),
]


@pytest.mark.parametrize("path", DISGUISES)
async def test_path_in_disguise_gives_no_more_than_its_right(path: str) -> None:
    async with serving(who=access(anonymous=True, authorizer=OnlyHealthz())) as running:
        answer = await (await running.client()).ask("GET", path)
    assert answer.status in (301, 400, 403, 404)
    assert b"busybox" not in answer.body


@pytest.mark.parametrize("path", DISGUISES)
async def test_path_that_serves_pods_was_authorized_as_pods(path: str) -> None:
    class Everything:
        asked: list[Attributes] = []

        async def allows(self, attributes: Attributes) -> bool:
            self.asked.append(attributes)
            return True

    rules = Everything()
    rules.asked = []
    async with serving(who=access(anonymous=True, authorizer=rules)) as running:
        answer = await (await running.client()).ask("GET", path)
    if b"busybox" in answer.body:
        assert [asked.subresource for asked in rules.asked] == ["pods"]
        assert subresources(rules.asked[0].path) == ("pods", "proxy")


@pytest.mark.parametrize(
    "path",
    [
        *("/logs/../secret", "/logs/%2e%2e/secret", "/logs/..%2fsecret", "/logs/%2e%2e%2fsecret", "/logs/./../secret"),
        *("/logs/%252e%252e/secret", "/logs/%c0%ae%c0%ae/secret", "/logs//../secret", "/logs/x/../../secret"),
        *("/logs/syslog%00/../../secret", "/logs/..%5csecret", "/logs/%2fsecret", "//secret", "/logs/..;/secret"),
    ],
)
async def test_system_logs_end_at_their_folder(tmp_path: Path, path: str) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "syslog").write_text("a line\n")
    (tmp_path / "secret").write_text("hunter2")
    target = path.replace("%2fsecret", "%2f" + str(tmp_path / "secret").strip("/"))
    async with serving(switches=RouteSwitches(system_logs=str(tmp_path / "log"))) as running:
        for one in (path, target):
            answer = await (await running.client()).ask("GET", one)
            assert answer.status in (301, 400, 404)
            assert b"hunter2" not in answer.body


async def test_requests_behind_a_long_answer_wait_in_bounded_memory() -> None:
    async def never(_options: object):  # type: ignore[no-untyped-def]
        yield b"one\n"
        await asyncio.Event().wait()

    node = FakeNode()
    node.logs.chunks = never
    async with serving(node) as running:
        client = await running.client()
        client.writer.write(b"GET /containerLogs/default/web/main?follow=true HTTP/1.1\r\nHost: node\r\n\r\n")
        await client.head()
        request = b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n" * 1000
        sent = 0
        async with asyncio.timeout(60):
            while True:
                client.writer.write(request)
                sent += len(request)
                try:
                    async with asyncio.timeout(1):
                        await client.writer.drain()
                except TimeoutError:
                    break
                assert sent < 64 << 20, "the server reads without end"
        client.writer.transport.abort()


async def test_user_names_and_paths_from_outside_stay_on_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    class Eve:
        async def review(self, token: str, source: str) -> User | None:
            return User("eve\nforged line")

    class Nothing:
        async def allows(self, attributes: Attributes) -> bool:
            return False

    caplog.set_level("INFO")
    async with serving(who=access(TokenAuthenticator(Eve()), authorizer=Nothing())) as running:
        client = await running.client()
        answer = await client.ask("GET", "/pods", {"Authorization": "Bearer x"})
    assert answer.status == 403
    assert "\n" not in " ".join(record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("form", ["two lengths", "null in a field", "spaces in the target", "method in lower case"])
async def test_refusal_of_what_is_not_http_is_short_and_quiet(form: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as running:
        client = await running.client()
        client.writer.write(AMBIGUOUS[form])
        answer = await client.answer()
    assert (answer.status, answer.body) == (400, b"400 Bad Request")
    assert answer.headers["server"] == "kubelet"
    assert not [record for record in caplog.records if record.exc_info or record.levelname == "ERROR"]


async def test_request_body_is_taken_as_it_is() -> None:
    async with serving() as running:
        client = await running.client()
        answer = await client.ask("PUT", "/debug/flags/v", {"Content-Encoding": "deflate"}, zlib.compress(b"4"))
    assert (answer.status, running.node.verbosity) == (400, 0)


@pytest.mark.parametrize(
    "target",
    ["//[", "http://[", "http://[::1/pods", "/%", "/%zz", "?", "http://:99999999999/pods", "http://a:b:c/pods"],
)
async def test_target_that_is_no_url_is_refused(target: str) -> None:
    async with serving(limits=QUICK) as running:
        found = await statuses(running, f"GET {target} HTTP/1.1\r\nHost: node\r\n\r\n".encode())
    assert found in ([301], [400], [404])


@pytest.mark.parametrize("target", ["http://[x", "http://[::1/healthz", "//[", "/%zz", "?", "*"])
def test_health_port_answers_a_target_that_is_no_url(target: str) -> None:
    assert healthz.answer(target, (PING,), lambda _name, _passed: None)[0] in (400, 404)
