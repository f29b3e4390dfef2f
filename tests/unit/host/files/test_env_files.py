from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from glasslet.host.files.env_files import MAX_FILE, EnvFileUnusable, parse_env_file, read_env_file, read_env_values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=1\nB=2\n", "1"),
        ("  A = 1 \t\n", "1"),
        ("# A=0\n\n\nA=1", "1"),
        ("A=1=2", "1=2"),
        ("A=", ""),
        ('A="x"', '"x"'),
        ("A=one \\\n  two\\\nthree\nB=2", "one two three"),
        ("A=1\r\nB=2\r\n", "1"),
        ("B=2\n", None),
        ("", None),
        ("A=1\nthis is no variable\n", "1"),
    ],
)
def test_a_variable_is_found_in_its_line(text: str, value: str | None) -> None:
    assert parse_env_file(text, {"A"}).value("A") == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no variable\nA=1", "invalid environment variable format at line 1"),
        ("=1\nA=1", "invalid environment variable format at line 1"),
        ("B=1\\\n\nA=1", "invalid environment variable format at line 2: blank line in continuation"),
        ("B=1\\\n# c\nA=1", "invalid environment variable format at line 2: comment in continuation"),
        ("B=1\\\n", "unexpected end of file: unfinished line continuation"),
    ],
)
def test_a_broken_line_before_the_variable_is_told_by_its_number(text: str, problem: str) -> None:
    with pytest.raises(EnvFileUnusable) as caught:
        parse_env_file(text, {"A"}).value("A")
    assert str(caught.value) == problem


def test_a_file_of_the_volume_is_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "env").write_text("A=1")
    (tmp_path / "link").symlink_to("sub/env")
    assert read_env_file(str(tmp_path), "sub/env") == "A=1"
    assert read_env_file(str(tmp_path), "link") == "A=1"


@pytest.mark.parametrize("goal", ["../secret", "/etc/hostname", "sub/../../secret"])
def test_no_link_leads_out_of_the_volume(tmp_path: Path, goal: str) -> None:
    volume = tmp_path / "volume"
    (volume / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("A=secret")
    (volume / "env").symlink_to(goal)
    with pytest.raises(EnvFileUnusable, match="leads out of the volume"):
        read_env_file(str(volume), "env")


def test_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "env")
    with pytest.raises(EnvFileUnusable, match="not a regular file"):
        read_env_file(str(tmp_path), "env")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    with open(tmp_path / "env", "wb") as file:
        file.truncate(MAX_FILE + 1)
    with pytest.raises(EnvFileUnusable, match="larger than"):
        read_env_file(str(tmp_path), "env")


def test_a_missing_file_is_told_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(EnvFileUnusable, match="No such file or directory"):
        read_env_file(str(tmp_path), "env")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_text_is_refused_without_showing_it(tmp_path: Path) -> None:
    (tmp_path / "env").write_bytes(b"A=\xff\xfe")
    with pytest.raises(EnvFileUnusable) as caught:
        read_env_file(str(tmp_path), "env")
    assert str(caught.value) == "it is not UTF-8 text"
    assert caught.value.__cause__ is None


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "env").write_bytes(b"A=1\n" + b"#" * MAX_FILE)
    real = os.fstat
    monkeypatch.setattr(os, "fstat", lambda descriptor: _of_no_size(real(descriptor)))
    with pytest.raises(EnvFileUnusable, match="larger than"):
        read_env_file(str(tmp_path), "env")


def _of_no_size(info: os.stat_result) -> os.stat_result:
    return os.stat_result((*info[:6], 0, *info[7:10]))


def test_half_a_million_joined_lines_are_read_in_one_go() -> None:
    text = "B=1\nA=" + "\\\n" * (MAX_FILE // 2 - 16) + "end\n"
    began = time.thread_time()
    found = parse_env_file(text, {"A", "B"})
    assert found.value("B") == "1"
    assert (found.value("A") or "").endswith("end")
    # Joined one by one they would take minutes.
    assert time.thread_time() - began < 5


def test_one_reading_serves_all_variables_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("A=1\nB=2\nA=3\n")
    found = read_env_values(str(tmp_path), "env", {"A", "B", "C"})
    assert [found.value(key) for key in "ABC"] == ["1", "2", None]
    assert repr(found) == "EnvFile(2 values, '')"
