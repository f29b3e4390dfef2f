"""A value on disk that may be damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct

from glasslet.host.files.small_files import write_checked
from glasslet.host.files.state_file import StateFile


class State(Struct, frozen=True):
    version: int = 0
    names: tuple[str, ...] = ()


@pytest.fixture
def findings() -> list[str]:
    return []


@pytest.fixture
def file(tmp_path: Path, findings: list[str]) -> StateFile[State]:
    return StateFile(path=str(tmp_path / "state"), kind=State, version=2, what="names", finding=findings.append)


def test_what_was_written_is_read(file: StateFile[State]) -> None:
    file.write(State(2, ("a", "b")))
    assert file.read() == State(2, ("a", "b"))


def test_no_file_is_nothing_and_no_finding(file: StateFile[State], findings: list[str]) -> None:
    assert file.read() is None
    assert findings == []


def test_a_damaged_file_is_one_finding_and_moved_aside(file: StateFile[State], findings: list[str]) -> None:
    file.write(State(2, ("a",)))
    path = Path(file.path)
    path.write_bytes(path.read_bytes()[:-3])
    assert file.read() is None
    assert file.read() is None
    assert len(findings) == 1
    assert findings[0].startswith("names of the last run are lost:")
    assert Path(f"{file.path}.damaged").exists()


def test_another_version_is_a_finding_that_names_both(file: StateFile[State], findings: list[str]) -> None:
    file.write(State(1, ("a",)))
    assert file.read() is None
    moved = f"moved to {file.path}.damaged"
    assert findings == [f"names of the last run are lost: {file.path} has version 1, want 2; {moved}"]


def test_another_shape_is_a_finding_that_names_the_field(file: StateFile[State], findings: list[str]) -> None:
    write_checked(file.path, b'{"version":2,"names":7}')
    assert file.read() is None
    assert "names: want a list" in findings[0]
