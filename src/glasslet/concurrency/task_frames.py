"""The stack of a task: the chain of coroutines that it awaits, outermost first. Cheap, and harmless to the task."""

from __future__ import annotations

import asyncio
from types import CodeType
from typing import Any

_DEEPEST = 64


def awaited_frames(task: asyncio.Task[Any]) -> list[str]:
    """Each frame as `file:line function`; files of this program from `glasslet/` on. Empty if the task has ended."""
    awaited: Any = task.get_coro()
    frames = []
    for _ in range(_DEEPEST):
        frame = _first_of(awaited, "cr_frame", "gi_frame", "ag_frame")
        if frame is not None:
            # Compilers give some instructions no line: the end of an `async with`, for one.
            frames.append(_place(frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
        awaited = _first_of(awaited, "cr_await", "gi_yieldfrom", "ag_await")
        if awaited is None:
            break
    return frames


def is_ours(frame: str) -> bool:
    """Whether it is code of this program."""
    return frame.startswith("glasslet/")


def innermost(frames: list[str]) -> str:
    """The last frame of this program; of any other if there is none; "" if there is no frame at all."""
    return next((frame for frame in reversed(frames) if is_ours(frame)), frames[-1] if frames else "")


def _place(code: CodeType, line: int) -> str:
    place = f"{code.co_filename.rpartition('/lib/')[2]}:{line} {code.co_qualname}"
    return f"glasslet/{place.rpartition('/glasslet/')[2]}" if "/glasslet/" in place else place


def _first_of(value: Any, *names: str) -> Any:
    return next((found for name in names if (found := getattr(value, name, None)) is not None), None)
