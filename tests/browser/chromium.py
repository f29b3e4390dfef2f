"""A headless Chromium of the system, in a network of its own: only loopback, so nothing can leave the machine, and
networks that other tests make and remove do not cut its connections."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAM = "/usr/bin/chromium"
_NEW_NETWORK = 0x40000000


class OwnNetwork:
    """A network namespace, held by a process that sleeps. `pid` 0: the machine's own network (no root)."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @property
    def prefix(self) -> list[str]:
        """Before a command, so that it runs in this network."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net"] if self.pid else []

    def enter(self) -> None:
        """Puts the calling thread into this network."""
        if not self.pid:
            return
        handle = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(handle, _NEW_NETWORK) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(handle)


@contextmanager
def own_network() -> Iterator[OwnNetwork]:
    """A network with loopback alone, as long as the body runs."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        yield OwnNetwork(0)
        return
    script = "ip link set lo up && echo ready && exec sleep infinity"
    holder = subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "ready\n"
        yield OwnNetwork(holder.pid)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def chromium_in(network: OwnNetwork, folder: Path) -> str:
    """The program to launch. Skips without a Chromium."""
    if not os.path.exists(PROGRAM):
        pytest.skip(f"BROWSER TESTS NOT RUN: there is no {PROGRAM} (apt-get install chromium)")
    if not network.pid:
        return PROGRAM
    launcher = folder / "chromium"
    launcher.write_text(f'#!/bin/sh\nexec {" ".join(network.prefix)} {PROGRAM} "$@"\n')
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    return str(launcher)
