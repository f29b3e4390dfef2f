"""Where reading begins, and in which pieces it goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from glasslet.runtime.logs import log_file
from glasslet.runtime.logs.log_file import LogFile, PathState, tail_offset


def offset_of(content: bytes, lines: int, tmp_path: Path) -> int:
    path = tmp_path / "0.log"
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return tail_offset(descriptor, lines)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 65536])
@pytest.mark.parametrize(
    ("content", "lines", "rest"),
    [
        (b"a\nb\nc\n", 0, b""),
        (b"a\nb\nc\n", 1, b"c\n"),
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc\n", 3, b"a\nb\nc\n"),
        (b"a\nb\nc\n", 9, b"a\nb\nc\n"),
        (b"a\nb\npart", 1, b"b\npart"),
        (b"a\nb\npart", 0, b"part"),
        (b"\n\n\n", 1, b"\n"),
        (b"", 5, b""),
        (b"part", 1, b"part"),
    ],
)
def test_the_last_lines_are_found_from_the_end(
    content: bytes, lines: int, rest: bytes, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "_BLOCK", block)
    assert content[offset_of(content, lines, tmp_path) :] == rest


def test_only_whole_lines_are_given_out(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"one\ntwo\nthr")
    log = LogFile(str(path))
    assert log.read_lines() == b"one\ntwo\n"
    assert log.read_lines() == b""
    with path.open("ab") as more:
        more.write(b"ee\nfo")
    assert log.read_lines() == b"three\n"
    assert log.take_rest() == b"fo"
    log.close()


def test_a_file_larger_than_a_piece_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "PIECE", 10)
    path = tmp_path / "0.log"
    content = b"".join(b"line %d\n" % n for n in range(100)) + b"x" * 50 + b"\nend"
    path.write_bytes(content)
    log = LogFile(str(path))
    pieces = []
    while piece := log.read_lines():
        assert piece.endswith(b"\n")
        pieces.append(piece)
    assert b"".join(pieces) + log.take_rest() == content
    log.close()


def test_an_endless_line_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "_LONGEST_LINE", 100)
    monkeypatch.setattr(log_file, "PIECE", 10)
    path = tmp_path / "0.log"
    path.write_bytes(b"x" * 1000)
    log = LogFile(str(path))
    assert 100 < len(log.read_lines()) <= 110
    log.close()


def test_the_place_of_a_file_is_known(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"one\ntwo\n")
    log = LogFile(str(path))
    log.read_lines()
    assert log.place() is PathState.SAME
    path.rename(tmp_path / "0.log.1")
    assert log.place() is PathState.SAME
    path.write_bytes(b"")
    assert log.place() is PathState.REPLACED
    log.close()
    log = LogFile(str(tmp_path / "0.log.1"))
    log.read_lines()
    (tmp_path / "0.log.1").write_bytes(b"")
    assert log.place() is PathState.TRUNCATED
    log.close()


def test_a_fifo_in_place_of_a_log_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    os.mkfifo(path)
    log = LogFile(str(path))
    with pytest.raises(OSError, match="Illegal seek"):
        log.read_lines()
    log.close()
