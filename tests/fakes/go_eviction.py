"""The Go kubelet's own eviction manager as a process: scripted figures in, its evictions in their order out.

Its program is built once by `tests/go/eviction/build`; without Go and without a built one, tests skip and say so, with
CI=true in the environment they fail instead.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from glasslet.api.codec import to_plain
from glasslet.api.pod import Pod
from glasslet.stats.disks.storage import DiskLayout
from glasslet.stats.pages.summary_types import Summary, encode_summary

SOURCES = Path(__file__).resolve().parents[1] / "go" / "eviction"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glasslet"


class Scenario(Struct, frozen=True, kw_only=True):
    """A node whose hard thresholds stay crossed. `limits`: limits of
    local storage are enforced."""

    hard: Mapping[str, str]
    pods: Sequence[Pod]
    summary: Summary
    layout: DiskLayout = DiskLayout()
    limits: bool = False


class GoEviction(Struct, frozen=True):
    """One pod that was chosen, with the message of its status and its grace in seconds."""

    pod: str
    message: str
    grace: int


def eviction_program() -> Path:
    """Where the program of these sources is, once it is built."""
    parts = sorted(path for path in SOURCES.iterdir() if path.is_file())
    sources = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in parts)).hexdigest()
    return _CACHE / f"eviction-{sources[:12]}"


def missing_eviction_requirement() -> str | None:
    """What this machine lacks to run it, in words; None when nothing does."""
    if not eviction_program().exists() and shutil.which("go") is None:
        return f"{eviction_program()} is not built and Go is not installed ({SOURCES / 'build'} makes it)"
    return None


def build() -> Path:
    """Makes the program where it is not there yet."""
    program = eviction_program()
    if not program.exists():
        subprocess.run([str(SOURCES / "build"), str(program)], check=True, stdout=subprocess.DEVNULL)
    return program


def evictions_of_go(scenarios: Iterable[Scenario]) -> list[list[GoEviction]]:
    """What the Go kubelet does in each scenario."""
    lines = "\n".join(json.dumps(_plain(one)) for one in scenarios)
    ran = subprocess.run([str(build())], input=lines, capture_output=True, text=True, check=True, timeout=240)
    return [[GoEviction(**one) for one in json.loads(line) or ()] for line in ran.stdout.splitlines()]


def _plain(one: Scenario) -> dict[str, Any]:
    return {
        "hard": dict(one.hard),
        # The Go kubelet calls it dedicated as well where only images are on another disk.
        "dedicated": one.layout != DiskLayout(),
        "split": one.layout.images_apart,
        "limits": one.limits,
        "pods": [to_plain(pod) for pod in one.pods],
        "summary": json.loads(encode_summary(one.summary)),
    }
