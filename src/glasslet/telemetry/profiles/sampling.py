"""Profiles that look at stacks again and again: CPU by thread, and wall time by thread and task.

The sampler runs in the caller's thread. One look costs some 50 µs; nothing is installed in the code that it looks at.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterable

from glasslet.telemetry.profiles.pprof import Place, Profile, Stack, ValueType, place_of, stack_of

CPU_PERIOD = 0.01
"""Seconds between looks for a CPU profile: 100 Hz, as Go has."""
WALL_PERIOD = 0.05
"""Seconds between looks for a wall profile: there may be thousands of tasks."""
_SAMPLES = ValueType("samples", "count")
_CPU = ValueType("cpu", "nanoseconds")
_WALL = ValueType("wall", "nanoseconds")
_DEEPEST_TASK = 64

Tasks = Iterable["asyncio.Task[object]"]


def cpu_profile(seconds: float, cancelled: threading.Event) -> Profile:
    """Where the threads of Python spent their CPU. What a thread used since the last look counts for its present
    stack. Threads of libraries (gRPC) have no stack and are left out."""
    profile = Profile((_SAMPLES, _CPU), time.time_ns(), period_type=_CPU, period=int(CPU_PERIOD * 1e9))
    used: dict[int, int] = {}
    me = threading.get_ident()

    def look() -> None:
        frames = sys._current_frames()
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if frame is None or thread.ident == me or thread.native_id is None:
                continue
            now = _cpu_of(thread.native_id)
            before = used.get(thread.native_id)
            used[thread.native_id] = now
            if before is not None and now > before:
                profile.add(stack_of(frame), (1, now - before), thread=thread.name)

    _repeat(look, seconds, CPU_PERIOD, cancelled)
    return _finished(profile)


def wall_profile(seconds: float, cancelled: threading.Event, tasks: Callable[[], Tasks]) -> Profile:
    """Where threads and tasks are, running or not: the stack of a suspended task is the chain of what it awaits."""
    profile = Profile((_SAMPLES, _WALL), time.time_ns(), period_type=_WALL, period=int(WALL_PERIOD * 1e9))
    me = threading.get_ident()
    last = time.monotonic_ns()

    def look() -> None:
        nonlocal last
        now = time.monotonic_ns()
        took, last = now - last, now
        for stack, name in stacks(tasks(), without=me):
            profile.add(stack, (1, took), thread=name)

    _repeat(look, seconds, WALL_PERIOD, cancelled)
    return _finished(profile)


def counted_stacks(tasks: Tasks) -> Profile:
    """How many threads and tasks are at each place now (Go's profile `goroutine`)."""
    profile = Profile((ValueType("goroutine", "count"),), time.time_ns())
    profile.period_type, profile.period = profile.types[0], 1
    for stack, _ in stacks(tasks, without=0):
        profile.add(stack, (1,))
    return profile


def stacks(tasks: Tasks, *, without: int) -> Iterable[tuple[Stack, str]]:
    """(stack, name) of every thread but the one with the ident `without`, and of every suspended task."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if frame is not None and thread.ident != without:
            yield stack_of(frame), f"thread {thread.name}"
    for task in tasks:
        stack = _awaited(task)
        if stack:
            yield stack, f"task {task.get_name()}"


def _awaited(task: asyncio.Task[object]) -> Stack:
    """The coroutines that a task awaits, the innermost first."""
    awaited: object = task.get_coro()
    places: list[Place] = []
    for _ in range(_DEEPEST_TASK):
        frame = _first_of(awaited, "cr_frame", "gi_frame", "ag_frame")
        if frame is not None:
            places.append(place_of(frame))  # type: ignore[arg-type]
        awaited = _first_of(awaited, "cr_await", "gi_yieldfrom", "ag_await")
        if awaited is None:
            break
    return tuple(reversed(places))


def _first_of(value: object, *names: str) -> object:
    return next((found for name in names if (found := getattr(value, name, None)) is not None), None)


def _cpu_of(thread: int) -> int:
    """Nanoseconds that a thread of this process has run."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat", "rb") as stat:
            return int(stat.read(64).split()[0])
    except (OSError, IndexError, ValueError):
        return 0


def _repeat(look: Callable[[], None], seconds: float, period: float, cancelled: threading.Event) -> None:
    end = time.monotonic() + seconds
    due = time.monotonic()
    while due < end and not cancelled.is_set():
        look()
        due = max(due + period, time.monotonic())
        cancelled.wait(max(0.0, min(due, end) - time.monotonic()))
    look()


def _finished(profile: Profile) -> Profile:
    profile.duration = time.time_ns() - profile.started
    return profile
