"""Killing what is left in a cgroup, and only that."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from glasslet.host.cgroups.processes import kill_processes


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as one:
        yield one
        one.kill()


def test_what_is_listed_is_killed(process: subprocess.Popen[bytes]) -> None:
    assert kill_processes(lambda: {process.pid}) == ()
    assert process.wait(60) == -9


def test_a_process_that_is_no_longer_listed_lives(process: subprocess.Popen[bytes]) -> None:
    """Between the two looks the id went to somebody else."""
    looks = iter([{process.pid}, set()])
    assert kill_processes(lambda: next(looks)) == ()
    assert process.poll() is None


def test_the_agent_init_and_processes_out_of_sight_are_never_killed() -> None:
    """A signal to 0 would go to the agent's own group."""
    assert kill_processes(lambda: {0, 1, os.getpid()}) == (0, 1, os.getpid())


def test_nothing_listed_is_nothing_to_do() -> None:
    assert kill_processes(set) == ()
