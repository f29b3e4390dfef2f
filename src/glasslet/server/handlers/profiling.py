"""`/debug/pprof/`: profiles of this agent in the format and under the names of Go's, as far as Python has them.

profile?seconds=30            CPU by stack
trace?seconds=1               wall time by stack of threads and tasks (Go's `trace` has a format of its own)
heap, heap?seconds=N          living objects by class; what was allocated in N seconds and is still there
allocs?seconds=N              the same under Go's names for allocations
goroutine?debug=0|1|2         threads and tasks by stack: a profile, or as text
cmdline                       the command line
"""

from __future__ import annotations

import asyncio
import io
import math
import sys
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiohttp import web

from glasslet.concurrency.own_threads import OwnThreads
from glasslet.concurrency.task_frames import awaited_frames
from glasslet.server import responses
from glasslet.server.routing import Parameters, Route, RouteTable

if TYPE_CHECKING:
    from glasslet.telemetry.profiles.pprof import Profile

LONGEST = 300.0
"""Seconds of one profile."""
_DEFAULTS = {"profile": 30.0, "trace": 1.0, "allocs": 5.0, "heap": 0.0}


def add_profiling(routes: RouteTable, *, enabled: bool) -> None:
    """Serves the profiles. Not `enabled` (enableProfilingHandler): 405."""
    if not enabled:

        async def disabled(_request: web.Request, _: Parameters) -> web.StreamResponse:
            return responses.error(405, "profiling endpoint is disabled.")

        routes.everything_below("/debug/pprof/", disabled)
        return
    routes.service("/debug/pprof/", Route(("GET",), "/debug/pprof/{profile:*}", Profiles().answer))


class Profiles:
    """One profile of a duration at a time: two would measure each other."""

    def __init__(self) -> None:
        self._threads = OwnThreads("profile", limit=2)
        self._busy = False

    async def answer(self, request: web.Request, parameters: Parameters) -> web.StreamResponse:
        """One profile."""
        name = parameters["profile"]
        match name:
            case "cmdline":
                # Not from /proc: the agent has a title of its own there.
                return responses.plain(200, "\0".join(sys.argv).encode("utf-8", "replace").decode())
            case "goroutine":
                return await self._goroutines(request)
            case "profile" | "trace" | "heap" | "allocs":
                return await self._measured(name, request)
            case _:
                return responses.error(404, "Unknown profile")

    async def _goroutines(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("debug", "0") not in ("", "0"):
            return responses.plain(200, thread_stacks() + task_stacks())
        from glasslet.telemetry.profiles.sampling import counted_stacks

        tasks = asyncio.all_tasks()
        return _file(await self._threads.run(lambda: counted_stacks(tasks).encoded()), "goroutine")

    async def _measured(self, name: str, request: web.Request) -> web.StreamResponse:
        seconds = _seconds(request.query.get("seconds", ""), _DEFAULTS[name])
        if seconds is None:
            return responses.plain(400, f"seconds: want a number from 0 to {LONGEST:g}\n")
        if self._busy:
            return responses.plain(500, f"Could not enable {name}: another profile is under way\n")
        from glasslet.telemetry.profiles.memory import ProfilerBusy

        self._busy = True
        cancelled = threading.Event()
        try:
            made = _measurement(name, seconds, cancelled, asyncio.get_running_loop())
            return _file(await self._threads.run(lambda: made().encoded()), name)
        except ProfilerBusy as busy:
            return responses.plain(500, f"Could not enable {name}: {busy}\n")
        finally:
            # A client that went away needs no profile.
            cancelled.set()
            self._busy = False


def _measurement(
    name: str, seconds: float, cancelled: threading.Event, loop: asyncio.AbstractEventLoop
) -> Callable[[], Profile]:
    from glasslet.telemetry.profiles.memory import allocations, living_objects
    from glasslet.telemetry.profiles.sampling import cpu_profile, wall_profile

    if name == "profile":
        return lambda: cpu_profile(seconds, cancelled)
    if name == "trace":
        return lambda: wall_profile(seconds, cancelled, lambda: asyncio.all_tasks(loop))
    if name == "heap" and not seconds:
        return living_objects
    return lambda: allocations(seconds or _DEFAULTS["allocs"], cancelled, freed_too=name == "allocs")


def _seconds(text: str, default: float) -> float | None:
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        return None
    if not math.isfinite(seconds) or not 0 <= seconds <= LONGEST:
        return None
    return seconds or default


def _file(body: bytes, name: str) -> web.Response:
    headers = {"X-Content-Type-Options": "nosniff", "Content-Disposition": f'attachment; filename="{name}"'}
    return web.Response(body=body, headers=headers, content_type="application/octet-stream")


def task_stacks() -> str:
    """Every task's name and stack, with all that it awaits, newest call last."""
    tasks = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    return "\n".join(
        f"Stack for task {task.get_name()}:\n" + "".join(f"  {frame}\n" for frame in awaited_frames(task))
        for task in tasks
    )


def thread_stacks() -> str:
    """Every thread's name and stack, newest call last."""
    frames = sys._current_frames()
    out = io.StringIO()
    for thread in sorted(threading.enumerate(), key=lambda thread: thread.name):
        frame = frames.get(thread.ident or 0)
        out.write(f"Stack for thread {thread.name}:\n")
        out.writelines(traceback.format_stack(frame))
        out.write("\n")
    return out.getvalue()
