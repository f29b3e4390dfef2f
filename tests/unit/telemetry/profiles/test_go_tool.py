"""`go tool pprof` reads every profile."""

from __future__ import annotations

import asyncio
import gzip
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from glasslet.telemetry.profiles.memory import allocations, living_objects
from glasslet.telemetry.profiles.pprof import Place, Profile, ValueType
from glasslet.telemetry.profiles.sampling import counted_stacks, cpu_profile, wall_profile

pytestmark = pytest.mark.go

NEVER = threading.Event()


class Kept:
    """Objects that a profile of the heap has to show."""


@pytest.fixture
def go() -> str:
    found = shutil.which("go") or "/usr/local/go/bin/go"
    if not Path(found).exists():
        pytest.skip("needs the Go tool chain")
    return found


def top(go: str, profile: Profile, tmp_path: Path, *options: str) -> str:
    """The text of `go tool pprof -top`."""
    path = tmp_path / "profile.pb.gz"
    path.write_bytes(profile.encoded())
    command = [go, "tool", "pprof", "-top", "-nodecount=500", *options, str(path)]
    environment = {**os.environ, "PPROF_TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def spinning(until: threading.Event) -> None:
    """Uses a CPU."""
    while not until.is_set():
        sum(range(1000))


@pytest.fixture
def busy() -> Iterator[None]:
    until = threading.Event()
    thread = threading.Thread(target=spinning, args=(until,), name="spinner")
    thread.start()
    yield
    until.set()
    thread.join()


def test_a_profile_of_known_stacks(go: str, tmp_path: Path) -> None:
    profile = Profile((ValueType("cpu", "nanoseconds"),), duration=10**9)
    leaf, root = Place("leaf", "/a.py", 1, 3), Place("root", "/a.py", 10, 12)
    profile.add((leaf, root), (300_000_000,))
    profile.add((root,), (100_000_000,))
    text = top(go, profile, tmp_path)
    assert "Type: cpu" in text
    assert "300ms 75.00% 75.00%      300ms 75.00%  leaf" in text
    assert "100ms 25.00%   100%      400ms   100%  root" in text


@pytest.mark.usefixtures("busy")
def test_the_cpu_profile_names_the_function_that_uses_the_cpu(go: str, tmp_path: Path) -> None:
    profile = cpu_profile(0.4, NEVER)
    text = top(go, profile, tmp_path)
    assert "Type: cpu" in text
    assert "spinning" in text
    # Nanoseconds, of 0.4 s of which a busy machine may give a tenth.
    assert sum(values[1] for values in profile.samples.values()) > 5_000_000
    assert "spinner" in top(go, profile, tmp_path, "-tagroot=thread")


@pytest.mark.usefixtures("busy")
def test_a_thread_that_waits_uses_no_cpu() -> None:
    until = threading.Event()
    thread = threading.Thread(target=until.wait, name="waiter")
    thread.start()
    profile = cpu_profile(0.2, NEVER)
    until.set()
    thread.join()
    spent = {name: values[1] for (_, name), values in profile.samples.items()}
    assert spent.get("waiter", 0) < 20_000_000


async def test_the_wall_profile_has_what_tasks_await(go: str, tmp_path: Path) -> None:
    async def inner() -> None:
        await asyncio.sleep(10)

    async def outer() -> None:
        await inner()

    task = asyncio.create_task(outer(), name="waiter")
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    profile = await asyncio.to_thread(wall_profile, 0.2, NEVER, lambda: asyncio.all_tasks(loop))
    counted = counted_stacks(asyncio.all_tasks())
    task.cancel()
    text = top(go, profile, tmp_path, "-cum")
    assert "outer" in text
    assert "inner" in text
    assert "Type: goroutine" in top(go, counted, tmp_path)


def test_the_heap_has_objects_by_class(go: str, tmp_path: Path) -> None:
    kept = [Kept() for _ in range(50)]
    profile = living_objects()
    assert "Kept" in top(go, profile, tmp_path, "-nodefraction=0", "-nodecount=100000")
    (count,) = [values[0] for ((place,), _), values in profile.samples.items() if place.function.endswith(".Kept")]
    assert count == len(kept)


def test_allocations_have_the_line_that_made_them(go: str, tmp_path: Path) -> None:
    kept: list[bytes] = []
    thread = threading.Timer(0.1, lambda: kept.append(bytes(5_000_000)))
    thread.start()
    text = top(go, allocations(0.4, NEVER, freed_too=True), tmp_path)
    thread.join()
    assert "Type: alloc_space" in text
    assert "test_go_tool.py" in text


def test_a_profile_ends_at_once_when_its_reader_goes() -> None:
    gone = threading.Event()
    gone.set()
    before = time.monotonic()
    cpu_profile(60, gone)
    assert time.monotonic() - before < 5


def test_a_profile_is_compressed() -> None:
    encoded = Profile((ValueType("a", "b"),)).encoded()
    assert b"\x01b" in gzip.decompress(encoded)
