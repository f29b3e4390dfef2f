from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from glasslet.host.files.termination import MAX_FILE_BYTES, log_end, log_name, log_of, read_last_words
from tests.builders.observed import exited_container

NOW = datetime(2026, 5, 1, 12, 0, 0, 123000, tzinfo=UTC)
FALLBACK = "FallbackToLogsOnError"


def cri_line(text: str, tag: str = "F") -> str:
    return f"2026-05-01T12:00:00.123456789Z stdout {tag} {text}\n"


@pytest.mark.parametrize(
    ("size", "read"),
    [
        # behaviours.md §19: "Message: the last 4096 bytes of the file."
        (10, 10),
        (4096, 4096),
        (5000, 4096),
    ],
)
def test_the_end_of_the_file_is_the_message(tmp_path: Path, size: int, read: int) -> None:
    path = tmp_path / "log"
    path.write_text("x" * (size - 1) + "!")
    assert read_last_words(str(path), "File", exited_container(code=1)) == "x" * (read - 1) + "!"


def test_bytes_that_are_no_text_do_not_spoil_the_rest(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\xff\xfegone")
    assert read_last_words(str(tmp_path / "log"), "File", exited_container()) == "\ufffd\ufffdgone"


def test_the_runtimes_words_come_first(tmp_path: Path) -> None:
    # behaviours.md §19: "A message of the runtime comes first, joined by `: `."
    (tmp_path / "log").write_text("mine")
    assert read_last_words(str(tmp_path / "log"), "File", exited_container(message="theirs")) == "theirs: mine"


def test_no_file_is_no_message() -> None:
    assert read_last_words("", "File", exited_container(code=1)) == ""
    assert read_last_words("/nonexistent/log", "File", exited_container(code=1)) == ""


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    text = read_last_words(str(tmp_path), "File", exited_container())
    assert text == f"Error on reading termination log {tmp_path}: Is a directory"


@pytest.mark.parametrize(
    ("policy", "code", "reason", "written", "used"),
    [
        # behaviours.md §19: "FallbackToLogsOnError with empty or missing file, non-zero exit and runtime reason other
        # than ContainerCannotRun"
        (FALLBACK, 1, "Error", "", True),
        (FALLBACK, 1, "Error", None, True),
        (FALLBACK, 1, "Error", "own words", False),
        (FALLBACK, 0, "Completed", "", False),
        (FALLBACK, 1, "ContainerCannotRun", "", False),
        ("File", 1, "Error", "", False),
    ],
)
def test_the_output_stands_in_only_for_failures_without_own_words(
    tmp_path: Path, policy: str, code: int, reason: str, written: str | None, used: bool
) -> None:
    (tmp_path / "0.log").write_text(cri_line("output"))
    if written is not None:
        (tmp_path / "words").write_text(written)
    ended = exited_container(code=code, reason=reason, log_path=str(tmp_path / "0.log"))
    found = read_last_words(str(tmp_path / "words"), policy, ended)
    assert (found == "output\n") is used


def end_of(tmp_path: Path, text: str) -> str:
    (tmp_path / "0.log").write_text(text)
    return log_end(str(tmp_path / "0.log"))


def test_the_last_eighty_lines_of_output_are_taken(tmp_path: Path) -> None:
    # behaviours.md §19: "last 80 log lines or 2048 bytes"
    found = end_of(tmp_path, "".join(cri_line(str(i)) for i in range(200)))
    assert found.split("\n") == [*(str(i) for i in range(120, 200)), ""]


def test_at_most_2048_bytes_of_output_are_taken(tmp_path: Path) -> None:
    found = end_of(tmp_path, "".join(cri_line("y" * 99) for _ in range(50)) + cri_line("end"))
    assert len(found) == 2048
    assert found.endswith("y\nend\n")


def test_a_line_longer_than_all_that_is_read_gives_its_end(tmp_path: Path) -> None:
    assert end_of(tmp_path, cri_line("a" * 50_000 + "end")) == "a" * 2044 + "end\n"


def test_parts_of_a_line_are_joined(tmp_path: Path) -> None:
    # behaviours.md §18: "P parts are joined with the next."
    assert end_of(tmp_path, cri_line("one ", "P") + cri_line("two") + cri_line("three")) == "one two\nthree\n"


def test_the_docker_form_is_read_too(tmp_path: Path) -> None:
    # behaviours.md §18: "Readers also take the docker JSON form."
    line = '{"log":"hello\\n","stream":"stderr","time":"2026-05-01T12:00:00Z"}\n'
    assert end_of(tmp_path, line) == "hello\n"


def test_output_that_looks_like_very_deep_json_is_output(tmp_path: Path) -> None:
    # Only the end of a long line is read: it may begin with a brace.
    for length in range(10_001, 10_005):
        assert len(end_of(tmp_path, cri_line(('{"":' * 5000)[:length]))) == 2048


def test_a_missing_log_is_told() -> None:
    assert log_end("/nonexistent/0.log") == "Error on reading termination message from logs: No such file or directory"


def test_the_name_of_a_log_is_eight_hexadecimal_digits() -> None:
    # behaviours.md §19: "<root>/pods/<uid>/containers/<container>/<8 hex>"
    assert log_name(NOW) == f"{int(NOW.timestamp() * 1000) % 2**32:08x}"


def test_an_instance_finds_its_log_by_its_time() -> None:
    made = [NOW + timedelta(seconds=seconds) for seconds in (0, 0.4, 30, 90)]
    names = [log_name(moment) for moment in made]
    for moment, name in zip(made, names, strict=True):
        assert log_of(names, moment + timedelta(milliseconds=70)) == name


def test_an_instance_finds_its_log_also_when_the_counter_began_anew() -> None:
    wrapped = datetime.fromtimestamp((2**32 * 420 + 5) / 1000, UTC)
    before = wrapped - timedelta(milliseconds=20)
    assert log_of([log_name(before)], wrapped) == log_name(before)


@pytest.mark.parametrize("names", [[], ["README", "0000000"], [log_name(NOW + timedelta(seconds=1))]])
def test_no_log_is_taken_that_cannot_be_the_instances(names: list[str]) -> None:
    assert log_of(names, NOW) is None


def test_last_words_of_a_file_of_gigabytes_are_its_last_bytes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    os.truncate(log, 8 << 30)
    with open(log, "ab") as file:
        file.write(b"the end")
    text = read_last_words(str(log), "File", exited_container())
    assert text.endswith("the end")
    assert len(text) == MAX_FILE_BYTES


def test_a_pipe_in_place_of_a_termination_log_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    text = read_last_words(str(tmp_path / "log"), "File", exited_container())
    assert text == f"Error on reading termination log {tmp_path}/log: is not a regular file"
