"""Work that is handed to a thread: it keeps the context of the task that handed it over."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Companion = Callable[[Callable[[], object]], Callable[[], object]]
_companions: list[Companion] = []


def carried(call: Callable[P, T], *args: P.args, **options: P.kwargs) -> Callable[[], T]:
    """The call, to be made once in another thread, in the context of the present task."""
    work: Callable[[], T] = partial(call, *args, **options)
    for companion in _companions:
        work = companion(work)  # type: ignore[assignment]
    return partial(copy_context().run, work)


def accompany(companion: Companion) -> None:
    """From now on `companion` may wrap each call that is handed to a thread."""
    _companions.append(companion)


def stop_accompanying(companion: Companion) -> None:
    """Ends `accompany`."""
    _companions.remove(companion)
