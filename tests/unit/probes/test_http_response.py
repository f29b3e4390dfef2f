"""HTTP answers: heads, bodies, broken ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasslet.probes.http_response import HEAD_BYTES, BadResponse, Head, ResponseReader


def reader(*pieces: bytes) -> ResponseReader:
    """A reader of a connection that brings these pieces and ends."""
    left = list(pieces)

    async def receive() -> bytes:
        return left.pop(0) if left else b""

    return ResponseReader(receive)


async def answer(*pieces: bytes, limit: int = 100) -> tuple[int, bytes]:
    one = reader(*pieces)
    head = await one.head()
    return head.status, await one.body(head, limit)


async def test_a_body_with_a_length_is_read_to_its_end() -> None:
    assert await answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more") == (200, b"hello")


async def test_an_answer_may_come_byte_by_byte() -> None:
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    assert await answer(*(bytes([byte]) for byte in whole)) == (200, b"hello")


async def test_a_body_without_a_length_ends_with_the_connection() -> None:
    assert await answer(b"HTTP/1.0 503\n\n", b"no", b"pe") == (503, b"nope")


async def test_a_body_in_chunks_is_put_together() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert await answer(head, b"3;x=y\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n") == (200, b"abcde")


@pytest.mark.parametrize(
    "pieces",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x" * 70),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 70),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n", b"x" * 70),
    ],
    ids=["length", "to the end", "chunks"],
)
async def test_no_more_than_the_limit_is_read(pieces: tuple[bytes, ...]) -> None:
    # behaviours.md §10: "body read up to 10 KiB"
    assert await answer(*pieces, limit=50) == (200, b"x" * 50)


@pytest.mark.parametrize("status", [204, 304])
async def test_some_answers_have_no_body_whatever_they_say(status: int) -> None:
    assert await answer(f"HTTP/1.1 {status} x\r\nContent-Length: 5\r\n\r\n".encode()) == (status, b"")


async def test_interim_answers_are_passed_over() -> None:
    assert await answer(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok") == (200, b"ok")


async def test_a_change_of_protocol_is_an_answer() -> None:
    assert (await answer(b"HTTP/1.1 101 Switching\r\n\r\n"))[0] == 101


async def test_the_first_of_two_headers_counts() -> None:
    one = reader(b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLOCATION: /b\r\n folded\r\n\r\n")
    assert await one.head() == Head(302, {"location": "/a"})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n", "unexpected EOF"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "unexpected EOF"),
        (b"garbage\r\n\r\n", 'malformed HTTP response "garbage"'),
        (b"\x15\x03\x01", r"malformed HTTP response \"\\x15\\x03\\x01\""),
        (b"HTTP/1.1 2000 OK\r\n\r\n", 'malformed HTTP status code "2000"'),
        (b"HTTP/1.1 abc OK\r\n\r\n", 'malformed HTTP status code "abc"'),
        (b"HTP/1.1 200 OK\r\n\r\n", 'malformed HTTP version "HTP/1.1"'),
        (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "malformed MIME header line"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 'bad Content-Length "-1"'),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 9, "too many 1xx"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * (HEAD_BYTES + 1), "response headers exceeded"),
    ],
)
async def test_what_is_no_answer_is_said_to_be_none(given: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=why):
        await reader(given).head()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "unexpected EOF"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "unexpected EOF"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "invalid byte in chunk length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 5000, "line too long"),
    ],
)
async def test_a_broken_body_is_told(given: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=why):
        await answer(given)


PIECES = [
    b"HTTP/1.1 200 OK\r\n", b"101 ", b"\r\n", b"\n", b"Content-Length: ", b"Transfer-Encoding: chunked\r\n",
    b"9" * 4301, b"-1", b"ffffffffffffffff\r\n", b"0\r\n", b"\x00", b"\xff", b": ", b" ", b"5\r\nhello\r\n",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=20))
async def test_whatever_comes_is_an_answer_or_a_bad_response(pieces: list[bytes]) -> None:
    rest = list(pieces)

    async def receive() -> bytes:
        return rest.pop(0) or b"x" if rest else b""

    reader = ResponseReader(receive)
    try:
        head = await reader.head()
        body = await reader.body(head, 100)
    except BadResponse as error:
        if len(str(error)) > 300:
            pytest.fail(f"a reason of {len(str(error))} characters")
    else:
        assert len(body) <= 100
