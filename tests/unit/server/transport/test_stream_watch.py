"""Frames are passed on as wholes, and a session that breaks off gets its failure written."""

from __future__ import annotations

import json
import random

import pytest

from glasslet.server.transport.stream_watch import HOLD, OpaqueWatch, SPDYWatch, WebSocketWatch
from tests.fakes.streaming_server import spdy_control, spdy_data, websocket_frame

SYN_REPLY, RST_STREAM = 2, 3


def spdy_session() -> bytes:
    return spdy_control(SYN_REPLY, (3).to_bytes(4, "big") + b"\0" * 6) + spdy_data(3, b"output") + spdy_data(5, b"")


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_or_changed_however_the_bytes_arrive(seed: int) -> None:
    pieces = random.Random(seed)
    frames = spdy_session() + spdy_data(3, bytes(pieces.randbytes(200_000))) + spdy_data(1, b"{}", fin=True)
    watch, passed, at = SPDYWatch(), b"", 0
    while at < len(frames):
        step = pieces.randint(1, 70_000)
        passed += watch.feed(frames[at : at + step])
        at += step
    assert passed == frames
    assert watch.finished()


def test_partial_frame_is_held_back() -> None:
    watch = SPDYWatch()
    frame = spdy_data(3, b"0123456789")
    assert watch.feed(frame[:12]) == b""
    assert watch.feed(frame[12:]) == frame


def test_large_frame_flows_without_being_held() -> None:
    watch = SPDYWatch()
    frame = spdy_data(3, b"x" * (HOLD + 1))
    assert watch.feed(frame[:1000]) == frame[:1000]
    assert watch.cut_notice("gone") == b""
    assert watch.feed(frame[1000:]) == frame[1000:]
    assert watch.cut_notice("gone")


def test_output_alone_does_not_finish_a_session() -> None:
    watch = SPDYWatch()
    watch.feed(spdy_session())
    assert not watch.finished()


def test_status_on_the_error_stream_finishes_it() -> None:
    watch = SPDYWatch()
    watch.feed(spdy_data(1, b'{"status":"Success"}'))
    assert watch.finished()


def test_end_of_the_error_stream_finishes_it() -> None:
    watch = SPDYWatch()
    watch.feed(spdy_data(1, b"", fin=True))
    assert watch.finished()


def test_cut_session_gets_a_failure_as_the_last_frame_of_the_error_stream() -> None:
    watch = SPDYWatch()
    watch.feed(spdy_session() + spdy_data(3, b"half")[:9])
    notice = watch.cut_notice("the runtime died")
    assert notice[:5] == b"\0\0\0\1\1"
    assert int.from_bytes(notice[5:8], "big") == len(notice) - 8
    status = json.loads(notice[8:])
    assert (status["kind"], status["status"], status["message"]) == ("Status", "Failure", "the runtime died")


def test_error_stream_that_was_reset_gets_no_notice() -> None:
    watch = SPDYWatch()
    watch.feed(spdy_control(RST_STREAM, (1).to_bytes(4, "big") + b"\0\0\0\2"))
    assert watch.cut_notice("gone") == b""


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536, 200_000])
def test_websocket_frames_of_all_sizes_are_followed(size: int) -> None:
    watch = WebSocketWatch()
    frames = websocket_frame(2, b"x" * size) + websocket_frame(8, b"\x03\xe8")
    assert b"".join(watch.feed(frames[at : at + 7]) for at in range(0, len(frames), 7)) == frames
    assert watch.finished()


def test_cut_websocket_gets_a_close_frame_with_the_reason() -> None:
    watch = WebSocketWatch()
    watch.feed(websocket_frame(2, b"\1output"))
    assert not watch.finished()
    assert watch.cut_notice("gone") == websocket_frame(8, (1011).to_bytes(2, "big") + b"gone")


def test_long_reason_fits_a_close_frame() -> None:
    assert len(WebSocketWatch().cut_notice("x" * 500)) == 2 + 125


def test_opaque_sessions_may_end_any_time() -> None:
    watch = OpaqueWatch()
    assert watch.feed(b"anything") == b"anything"
    assert watch.finished()
