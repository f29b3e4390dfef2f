"""Profiles of memory: every living object by its class, and what was allocated during some seconds.

Python keeps no record of allocations unless asked (tracemalloc), which costs the agent about half of its speed
meanwhile. So a profile without `seconds` counts what is there; one with `seconds` shows where it comes from.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
import tracemalloc

from glasslet.telemetry.profiles.pprof import Place, Profile, ValueType

FRAMES = 16
"""Frames kept of each allocation."""
_COUNT, _SPACE = ValueType("inuse_objects", "count"), ValueType("inuse_space", "bytes")


def living_objects() -> Profile:
    """Objects that the garbage collector knows, by class; the size of each is its own, without what it refers to. The
    agent's code, which is frozen after the start, is left out."""
    profile = Profile((_COUNT, _SPACE), time.time_ns(), period_type=_SPACE, period=1)
    found: dict[type, list[int]] = {}
    for thing in gc.get_objects():
        kind = type(thing)
        known = found.setdefault(kind, [0, 0])
        known[0] += 1
        known[1] += _size(thing)
    for kind, values in found.items():
        # The module of a class may be anything that its maker set.
        module = kind.__module__ if isinstance(kind.__module__, str) else ""
        place = Place(f"{module}.{kind.__qualname__}", module, 0, 0)
        profile.add((place,), values)
    return profile


def allocations(seconds: float, cancelled: threading.Event, *, freed_too: bool) -> Profile:
    """Memory that was allocated during these seconds and is still in use at their end. Python counts no freed memory:
    `freed_too` gives the same figures under Go's names for all allocations. Raises ProfilerBusy."""
    if tracemalloc.is_tracing():
        raise ProfilerBusy("allocations are being traced already")
    names = ("alloc_objects", "alloc_space") if freed_too else ("inuse_objects", "inuse_space")
    types = (ValueType(names[0], "count"), ValueType(names[1], "bytes"))
    profile = Profile(types, time.time_ns(), period_type=types[1], period=1)
    tracemalloc.start(FRAMES)
    try:
        cancelled.wait(seconds)
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    for statistic in snapshot.statistics("traceback"):
        stack = tuple(_place(frame) for frame in reversed(statistic.traceback))
        profile.add(stack, (statistic.count, statistic.size))
    profile.duration = time.time_ns() - profile.started
    return profile


class ProfilerBusy(Exception):
    """Another profile of this kind is under way."""


def _place(frame: tracemalloc.Frame) -> Place:
    # tracemalloc keeps file and line, no function.
    name = frame.filename.rpartition("/site-packages/")[2].rpartition("/lib/")[2].rpartition("/src/")[2]
    return Place(f"{name}:{frame.lineno}", frame.filename, frame.lineno, frame.lineno)


def _size(thing: object) -> int:
    try:
        return sys.getsizeof(thing)
    except Exception:
        # An object with a broken size.
        return 0
