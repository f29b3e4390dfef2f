"""Looks at real processes: who uses a path, who listens on a port, what runs below a process."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from glasslet.host.processes import below, environment, listeners, processes, socket_owner, users_of
from glasslet.host.start_failures import start_failure


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that works in `tmp_path`."""
    words = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(
        words, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"CNI_COMMAND": "ADD", "TOKEN": "x"}
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_process_in_a_folder_is_one_of_its_users(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    assert sleeper.pid in [process.pid for process in users_of(str(tmp_path))]


def test_a_folder_beside_has_other_users(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    assert users_of(str(tmp_path)[:-1]) == []


def test_a_child_is_below_its_parent(sleeper: subprocess.Popen[bytes]) -> None:
    every = processes()
    assert sleeper.pid in [process.pid for process in below(os.getpid(), every)]
    assert every[sleeper.pid].command[1] == "-c"


def test_of_an_environment_only_the_wanted_names_are_kept(sleeper: subprocess.Popen[bytes]) -> None:
    assert environment(sleeper.pid, "CNI_") == {"CNI_COMMAND": "ADD"}


def test_the_listener_of_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert os.getpid() in [process.pid for process in listeners(server.getsockname()[1])]


def test_a_port_without_a_listener_has_none() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert listeners(bound.getsockname()[1]) == []


def test_the_owner_of_a_unix_socket_is_found(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        assert socket_owner(str(tmp_path / "s")) == os.getpid()
    assert socket_owner(str(tmp_path / "none")) == 0


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/k"), "no space is left on the disk (/k)"),
        (PermissionError(errno.EACCES, "Permission denied", "/k"), "a file or folder cannot be written (/k)"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "/k"), "in the way of something else (/k)"),
        (ValueError("no such thing"), "no such thing"),
        (ExceptionGroup("several", [ValueError("the first")]), "the first"),
    ],
)
def test_the_error_of_a_start_names_its_cause(error: BaseException, words: str) -> None:
    assert words in start_failure(error)


def test_a_port_in_use_is_named() -> None:
    text = "error while attempting to bind on address ('127.0.0.1', 1): address already in use"
    assert start_failure(OSError(errno.EADDRINUSE, text)) == "port 1 of 127.0.0.1 is in use"
