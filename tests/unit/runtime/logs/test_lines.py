"""Log lines of runtimes -> what the container wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasslet.runtime.logs.lines import UnknownLogFormat, decoder_for
from glasslet.runtime.logs.options import LogOptions, LogStream

TEN = b"2026-01-01T10:00:00.123456789Z"


def show(log: bytes, **options: Any) -> bytes:
    return decoder_for(log, LogOptions(**options)).decode(log)


def cri(*lines: tuple[bytes, bytes, bytes], stamp: bytes = TEN) -> bytes:
    return b"".join(b"%b %b %b %b\n" % (stamp, *line) for line in lines)


OUT = (b"stdout", b"F", b"to out")
ERR = (b"stderr", b"F", b"to err")


def test_the_prefix_is_taken_off() -> None:
    # behaviours.md §18: "Line form: RFC3339Nano time, stream, tag P or F, text."
    assert show(cri(OUT, ERR)) == b"to out\nto err\n"


def test_parts_of_a_line_are_joined() -> None:
    # behaviours.md §18: "P parts are joined with the next."
    log = cri((b"stdout", b"P", b"one "), (b"stdout", b"P", b"two "), (b"stdout", b"F", b"three"), OUT)
    assert show(log) == b"one two three\nto out\n"


def test_empty_lines_and_blanks_are_kept() -> None:
    assert show(cri((b"stdout", b"F", b""), (b"stdout", b"F", b"  a  "), (b"stdout", b"F", b""))) == b"\n  a  \n\n"


def test_text_that_looks_like_a_prefix_stays() -> None:
    text = TEN + b" stdout F nested"
    assert show(cri((b"stdout", b"F", text))) == text + b"\n"


def test_bytes_that_are_no_utf8_pass_through() -> None:
    assert show(cri((b"stdout", b"F", b"\xff\xfe\r\x00"))) == b"\xff\xfe\r\x00\n"


def test_later_tags_after_a_colon_are_ignored() -> None:
    assert show(cri((b"stdout", b"P:new", b"a"), (b"stdout", b"F:new", b"b"))) == b"ab\n"


@pytest.mark.parametrize(
    "bad",
    [
        b"no prefix at all\n",
        b"\n",
        b"2026-01-01T10:00:00Z\n",
        b"2026-01-01T10:00:00Z stdout\n",
        b"2026-01-01T10:00:00Z stdout F\n",
        b"2026-01-01T10:00:00Z stdin F text\n",
        b"yesterday stdout F text\n",
        b"short\n2026\n",
    ],
)
def test_a_line_in_no_known_form_is_left_out_and_the_others_shown(bad: bytes) -> None:
    assert show(cri(OUT) + bad + cri(ERR)) == b"to out\nto err\n"


def test_a_last_line_without_end_is_shown_without_end() -> None:
    assert show(cri(OUT) + cri(ERR)[:-1]) == b"to out\nto err"


@pytest.mark.parametrize(
    ("stamp", "printed"),
    [
        (b"2026-01-01T10:00:00Z", b"2026-01-01T10:00:00.000000000Z"),
        (b"2026-01-01T10:00:00.1Z", b"2026-01-01T10:00:00.100000000Z"),
        (b"2026-01-01T10:00:00.123456789Z", b"2026-01-01T10:00:00.123456789Z"),
        (b"2026-01-01T10:00:00.5+02:00", b"2026-01-01T10:00:00.500000000+02:00"),
        (b"2026-01-01T10:00:00.5+00:00", b"2026-01-01T10:00:00.500000000Z"),
    ],
)
def test_times_are_printed_with_nine_digits(stamp: bytes, printed: bytes) -> None:
    # behaviours.md §18: "With timestamps=true the printed time has always 9 fraction digits."
    assert show(cri(OUT, stamp=stamp), timestamps=True) == printed + b" to out\n"


def test_a_joined_line_has_one_time() -> None:
    log = cri((b"stdout", b"P", b"one "), (b"stdout", b"F", b"two"), OUT)
    assert show(log, timestamps=True) == b"%b one two\n%b to out\n" % (TEN, TEN)


def test_one_stream_can_be_asked_for() -> None:
    assert show(cri(OUT, ERR), stream=LogStream.STDOUT) == b"to out\n"
    assert show(cri(OUT, ERR), stream=LogStream.STDERR) == b"to err\n"


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        (b"2026-01-01T09:59:59.999999999Z", False),
        (b"2026-01-01T10:00:00Z", True),
        (b"2026-01-01T10:00:00.000000001Z", True),
        (b"2026-01-01T11:59:59+02:00", False),
        (b"2026-01-01T12:00:00.5+02:00", True),
        (b"2026-01-01T05:00:00-05:00", True),
        (b"2026-13-01T10:00:00+01:00", False),
    ],
)
def test_older_lines_are_left_out_whatever_their_zone(stamp: bytes, shown: bool) -> None:
    since = datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert show(cri(OUT, stamp=stamp), since=since) == (b"to out\n" if shown else b"")


def test_dockers_form_is_read_too() -> None:
    # behaviours.md §18: "Readers also take the docker JSON form."
    log = (
        b'{"log":"one\\n","stream":"stdout","time":"2026-01-01T10:00:00.5Z"}\n'
        b'{"log":"two, ","stream":"stderr","time":"2026-01-01T10:00:01Z"}\n'
        b"{broken\n"
        b'{"log":"a \\u00e9\\n","stream":"stderr","time":"2026-01-01T10:00:02Z","attrs":{}}\n'
    )
    assert show(log) == "one\ntwo, a é\n".encode()
    assert show(log, stream=LogStream.STDOUT, timestamps=True) == b"2026-01-01T10:00:00.500000000Z one\n"


def test_what_is_no_log_is_refused_without_showing_its_content() -> None:
    with pytest.raises(UnknownLogFormat) as raised:
        show(b"root:x:0:0:secret\n")
    assert "secret" not in str(raised.value)


texts = st.binary(max_size=60).map(lambda b: b.replace(b"\n", b" "))
lines = st.lists(st.tuples(st.sampled_from([b"stdout", b"stderr"]), st.sampled_from([b"P", b"F"]), texts), min_size=1)


@given(lines)
def test_the_quick_way_and_the_thorough_way_agree(written: list[tuple[bytes, bytes, bytes]]) -> None:
    log = cri(*written)
    since = datetime(2000, 1, 1, tzinfo=UTC)
    assert (
        show(log)
        == show(log, since=since)
        == b"".join(text + (b"\n" if tag == b"F" else b"") for _, tag, text in written)
    )


@given(lines, st.lists(st.binary(max_size=45), max_size=3))
def test_foreign_lines_never_change_what_is_shown_of_the_others(
    written: list[tuple[bytes, bytes, bytes]], foreign: list[bytes]
) -> None:
    noise = b"".join(b"#" + f.replace(b"\n", b"") + b"\n" for f in foreign)
    log = cri(*written)
    assert show(log + noise + log) == show(log + log)
