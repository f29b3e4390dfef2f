"""The agent's process is found by its name, as scripts, monitoring and upstream's node suite look for it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

NAMED = "from glasslet.host.process import set_own_title; set_own_title(['--v=2', '--config=/x']); print(); input()"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the interpreter that has named itself."""
    with subprocess.Popen([sys.executable, "-c", NAMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
        started.communicate(b"\n")


def test_pidof_finds_the_agent(process: subprocess.Popen[bytes]) -> None:
    program = shutil.which("pidof")
    if program is None:
        pytest.skip("pidof is missing on this machine")
    found = subprocess.run([program, "kubelet"], capture_output=True, check=False, text=True).stdout
    assert str(process.pid) in found.split()


def test_upstreams_node_suite_finds_the_agent(process: subprocess.Popen[bytes]) -> None:
    # Its look-up: the first word of the first argument in /proc/PID/cmdline, by a pattern that ends with the name.
    first = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    assert re.search("(^|/)kubelet$", re.split(r"[\s:]+", first)[0])


def test_the_flags_stay_visible_and_the_short_name_is_whole(process: subprocess.Popen[bytes]) -> None:
    folder = Path(f"/proc/{process.pid}")
    assert (folder / "cmdline").read_bytes().rstrip(b"\0") == b"kubelet --v=2 --config=/x"
    assert (folder / "comm").read_text() == "kubelet\n"
