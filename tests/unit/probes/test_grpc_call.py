"""HTTP/2 and HPACK, as far as a health check takes them. The HPACK examples are those of RFC 7541, appendix C."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasslet.probes.grpc_call import PREFACE, Answered, NotHTTP2, UnaryCall, frame
from glasslet.probes.hpack import BadHeaders, HeaderDecoder, decompress, encode_header

SETTINGS = frame(4, 0, b"", stream=0)
OK_HEAD = frame(1, 0x4, b"\x88" + encode_header("content-type", "application/grpc"), stream=1)
SERVING = frame(0, 0, b"\0\0\0\0\x02\x08\x01", stream=1)


def trailers(**headers: str) -> bytes:
    block = b"".join(encode_header(name.replace("_", "-"), value) for name, value in headers.items())
    return frame(1, 0x5, block, stream=1)


class Wire:
    """The other side, which sends all its frames whatever it receives."""

    def __init__(self, *said: bytes) -> None:
        self.said = list(said)
        self.heard = b""

    async def send(self, data: bytes) -> None:
        self.heard += data

    async def receive(self) -> bytes:
        return self.said.pop(0) if self.said else b""


async def called(*said: bytes) -> Answered:
    call = UnaryCall(Wire(SETTINGS, *said))
    await call.greet()
    return await call.call("/x", b"", {})


async def test_an_answer_is_its_message() -> None:
    assert await called(OK_HEAD, SERVING, trailers(grpc_status="0")) == Answered(code=0, message=b"\x08\x01")


async def test_an_answer_may_come_byte_by_byte() -> None:
    whole = OK_HEAD + SERVING + trailers(grpc_status="0")
    assert (await called(*(bytes([byte]) for byte in whole))).code == 0


async def test_an_error_without_an_answer_has_one_set_of_headers() -> None:
    block = b"\x88" + encode_header("grpc-status", "12") + encode_header("grpc-message", "no%20such")
    assert await called(frame(1, 0x5, block, stream=1)) == Answered(code=12, details="no such")


async def test_headers_may_be_padded_ranked_and_continued() -> None:
    block = b"\x88" + encode_header("grpc-status", "5")
    padded = frame(1, 0x1 | 0x8 | 0x20, b"\x03" + b"\0" * 5 + block[:4] + b"\0" * 3, stream=1)
    assert (await called(padded, frame(9, 0x4, block[4:], stream=1))).code == 5


async def test_pseudo_headers_come_before_all_others() -> None:
    wire = Wire(SETTINGS, OK_HEAD, SERVING, trailers(grpc_status="0"))
    call = UnaryCall(wire)
    await call.greet()
    await call.call("/x", b"", {":authority": "a:1", "user-agent": "me"})
    # What is before: the preface, the settings, the acknowledgement. A head of a frame has nine bytes.
    sent = wire.heard.removeprefix(PREFACE)[18:]
    names = list(HeaderDecoder().decode(sent[9 : 9 + int.from_bytes(sent[:3], "big")]))
    # RFC 9113 section 8.3: "All pseudo-header fields MUST appear in a field block before all regular field lines."
    assert names == [":method", ":scheme", ":path", ":authority", "te", "user-agent"]


async def test_pings_and_settings_are_answered_meanwhile() -> None:
    wire = Wire(SETTINGS, frame(6, 0, b"12345678", stream=0), SETTINGS, OK_HEAD, SERVING, trailers(grpc_status="0"))
    call = UnaryCall(wire)
    await call.greet()
    assert (await call.call("/x", b"", {})).code == 0
    assert wire.heard.count(frame(6, 1, b"12345678", stream=0)) == 1
    assert wire.heard.count(frame(4, 1, b"", stream=0)) == 2


@pytest.mark.parametrize(
    ("said", "code", "details"),
    [
        (frame(3, 0, b"\0\0\0\x07", stream=1), 14, "RST_STREAM with error code: 7"),
        (frame(3, 0, b"\0\0\0\x02", stream=1), 13, "RST_STREAM with error code: 2"),
        (frame(7, 0, b"\0\0\0\0\0\0\0\0", stream=0), 14, "GOAWAY"),
        (frame(1, 0x5, encode_header(":status", "503"), stream=1), 14, "unexpected HTTP status code.*503"),
        (frame(1, 0x5, b"\x8d", stream=1), 12, "unexpected HTTP status code.*404"),
        (OK_HEAD + trailers(other="x"), 2, "malformed grpc-status"),
        (OK_HEAD + trailers(grpc_status="0"), 13, "no message"),
        (OK_HEAD + frame(0, 0x1, b"", stream=1), 13, "without sending trailers"),
        (frame(1, 0x5, b"\xff\xff\xff\xff\xff\xff\xff", stream=1), 13, "does not end"),
    ],
)
async def test_what_ends_a_call_is_told(said: bytes, code: int, details: str) -> None:
    answered = await called(said)
    assert answered.code == code
    assert re.search(details, answered.details)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", frame(4, 1, b"", stream=0)])
async def test_what_is_no_greeting_is_no_http_2(said: bytes) -> None:
    with pytest.raises(NotHTTP2):
        await UnaryCall(Wire(said)).greet()


async def test_an_endless_answer_is_not_read_to_its_end() -> None:
    with pytest.raises(NotHTTP2, match="endless"):
        await called(OK_HEAD, *[frame(0, 0, b"x" * 16000, stream=1)] * 20)


# -- HPACK -----------------------------------------------------------------------------------------------------------

FIRST = "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"
SECOND = "8286 84be 5886 a8eb 1064 9cbf"
THIRD = "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"
RESPONSE = (
    "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b"
    "97c8 e9ae 82ae 43d3"
)


def test_the_examples_of_the_standard_are_read() -> None:
    decoder = HeaderDecoder()
    base = {":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com"}
    assert decoder.decode(bytes.fromhex(FIRST)) == base
    assert decoder.decode(bytes.fromhex(SECOND)) == {**base, "cache-control": "no-cache"}
    third = {":method": "GET", ":scheme": "https", ":path": "/index.html", ":authority": "www.example.com"}
    assert decoder.decode(bytes.fromhex(THIRD)) == {**third, "custom-key": "custom-value"}


def test_a_response_of_the_standard_is_read() -> None:
    assert HeaderDecoder().decode(bytes.fromhex(RESPONSE)) == {
        ":status": "302",
        "cache-control": "private",
        "date": "Mon, 21 Oct 2013 20:13:21 GMT",
        "location": "https://www.example.com",
    }


def test_a_table_may_shrink() -> None:
    decoder = HeaderDecoder()
    decoder.decode(bytes.fromhex(FIRST))
    with pytest.raises(BadHeaders):
        decoder.decode(b"\x20\xbe")


@given(st.text(min_size=1, max_size=20), st.text(max_size=300))
def test_what_is_written_can_be_read(name: str, value: str) -> None:
    read = HeaderDecoder().decode(encode_header(name, value))
    assert {k.encode("latin-1"): v.encode("latin-1") for k, v in read.items()} == {name.encode(): value.encode()}


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(block: bytes) -> None:
    try:
        HeaderDecoder().decode(block)
    except BadHeaders:
        return


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x00", b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4"])
def test_texts_that_end_within_a_code_are_refused(data: bytes) -> None:
    with pytest.raises(BadHeaders):
        decompress(data)


FRAMES = st.builds(
    lambda kind, flags, payload, stream: frame(kind, flags, payload, stream=stream),
    st.integers(0, 10),
    st.integers(0, 255),
    st.binary(max_size=40) | st.sampled_from([b"\x88", encode_header("grpc-status", "0"), b"\0\0\0\0\x02\x08\x01"]),
    st.integers(0, 3),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(FRAMES, max_size=12))
async def test_whatever_comes_ends_the_call_or_is_no_http_2(frames: list[bytes]) -> None:
    try:
        answered = await called(*frames)
    except NotHTTP2:
        return
    assert answered.code >= 0
