"""How many files the agent may have open, in a process of its own: a hard limit once lowered stays so."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
from glasslet.host.process import set_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1000))
set_open_files(int(sys.argv[1]))
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def limits_after(most: int) -> tuple[int, ...]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(most)], check=True, capture_output=True, text=True)
    return tuple(int(number) for number in done.stdout.split())


@pytest.mark.parametrize("most", [50, 1000])
def test_the_limit_is_the_configured_one(most: int) -> None:
    assert limits_after(most) == (most, most)


def test_without_the_right_to_more_it_is_all_that_is_allowed() -> None:
    soft, hard = limits_after(10**6)
    assert (soft, hard) in ((1000, 1000), (10**6, 10**6))


def test_none_at_all_is_not_taken_at_its_word() -> None:
    assert limits_after(0) == (100, 1000)
