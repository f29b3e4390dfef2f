"""The agent's start as a tree of calls, always kept: cheap, as only the functions that build the agent are watched.

    watch = StartWatch()                # first of all
    watch.wrapped(load)(arguments)      # one function; `with watch.part("name"):` for what is no function
    watch.watch(["glasslet.daemon"])    # the functions that these modules call by name are replaced until the end
    watch.finished()                    # the agent is started: the functions are themselves again

Every function of this program that the watched modules hold is replaced by one that notes its start and its end. A
coroutine is driven step by step, so that its own time and what it awaits are apart.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import iscoroutinefunction
from types import CodeType, FunctionType, ModuleType, coroutine
from typing import Any

from glasslet.answers.calls import Call

PARTS = 500
"""Calls kept of a start."""
_caller: ContextVar[StartCall | None] = ContextVar("glasslet_start_caller", default=None)


class StartCall:
    """One call of the start. Times in seconds of `time.perf_counter`."""

    __slots__ = (
        "code",
        "cpu",
        "end",
        "line",
        "name",
        "number",
        "outcome",
        "parent",
        "resumed",
        "start",
        "waited",
        "waits",
    )

    def __init__(self, number: int, parent: int, name: str, code: CodeType) -> None:
        self.number = number
        self.parent = parent
        self.name = name
        self.code = code
        self.line = code.co_firstlineno
        self.start = time.perf_counter()
        self.end = 0.0
        self.cpu = 0.0
        self.resumed = time.thread_time()
        self.waited = 0.0
        self.waits: dict[str, float] = {}
        self.outcome = ""

    def ended(self, outcome: str = "") -> None:
        """The call is over."""
        self.cpu += time.thread_time() - self.resumed
        self.end = time.perf_counter()
        self.outcome = outcome


class StartWatch:
    """The calls of one start."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.wall = time.time()
        self.parts: list[StartCall] = []
        self.left_out = 0
        self.over = False
        self._replaced: list[tuple[ModuleType, str, object]] = []
        self._wrapped: dict[object, object] = {}

    def watch(self, prefixes: Iterable[str]) -> None:
        """Watches the functions of this program that the loaded modules with these names hold."""
        chosen = tuple(prefixes)
        for name, module in list(sys.modules.items()):
            if name.startswith(chosen):
                self._watch(module)

    def finished(self) -> None:
        """The agent is started."""
        for module, name, function in self._replaced:
            setattr(module, name, function)
        self._replaced.clear()
        self._wrapped.clear()
        self.over = True

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """The body is a part of the start that is no function: it is shown at the caller's place."""
        frame = sys._getframe(2)
        part = StartCall(len(self.parts), _number(_caller.get()), name, frame.f_code)
        part.line = frame.f_lineno
        self.parts.append(part)
        token = _caller.set(part)
        try:
            yield
        except BaseException as error:
            part.ended(type(error).__name__)
            raise
        else:
            part.ended()
        finally:
            _caller.reset(token)

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, watched."""
        known = self._wrapped.get(function)
        if known is None:
            known = self._wrapped[function] = self._made(function)
        return known  # type: ignore[return-value]

    def calls(self) -> tuple[Call, ...]:
        """All calls in the order of their starts."""
        return tuple(self._shown(part) for part in list(self.parts))

    def _watch(self, module: ModuleType) -> None:
        for name, value in list(vars(module).items()):
            if not isinstance(value, FunctionType) or not str(value.__module__).startswith("glasslet."):
                continue
            # Small private functions of the modules are not worth a line, and context managers end before their body.
            if hasattr(value, "__wrapped__") or value.__module__.startswith(_LEFT_ALONE):
                continue
            setattr(module, name, self.wrapped(value))
            self._replaced.append((module, name, value))

    def _made(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **options: Any) -> Any:
                part = self._begun(function)
                if part is None:
                    return await function(*args, **options)
                return await _driven(part, function(*args, **options))

            return awaited

        @functools.wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            part = self._begun(function)
            if part is None:
                return function(*args, **options)
            token = _caller.set(part)
            try:
                result = function(*args, **options)
            except BaseException as error:
                part.ended(type(error).__name__)
                raise
            finally:
                _caller.reset(token)
            part.ended()
            return result

        return called

    def _begun(self, function: Any) -> StartCall | None:
        if self.over:
            return None
        if len(self.parts) >= PARTS:
            self.left_out += 1
            return None
        part = StartCall(len(self.parts), _number(_caller.get()), function.__qualname__, function.__code__)
        self.parts.append(part)
        return part

    def _shown(self, part: StartCall) -> Call:
        return Call(
            parent=part.parent,
            function=part.name,
            file=_file(part.code.co_filename),
            line=part.line,
            start_ms=round((part.start - self.began) * 1000, 3),
            end_ms=round((part.end - self.began) * 1000, 3) if part.end else None,
            cpu_ms=round(part.cpu * 1000, 3),
            waited_ms=round(part.waited * 1000, 3),
            waited_on=max(part.waits, key=lambda on: part.waits[on], default=""),
            outcome=part.outcome,
        )


_LEFT_ALONE = ("glasslet.calls", "glasslet.record")


def _number(caller: StartCall | None) -> int:
    return caller.number if caller is not None else -1


@coroutine
def _driven(part: StartCall, awaited: Any) -> Generator[Any, Any, Any]:
    """Runs a coroutine; the time between its steps is what it awaited."""
    value: Any = None
    thrown: BaseException | None = None
    while True:
        token = _caller.set(part)
        try:
            yielded = awaited.throw(thrown) if thrown is not None else awaited.send(value)
        except StopIteration as stop:
            part.ended()
            return stop.value
        except BaseException as error:
            part.ended(type(error).__name__)
            raise
        finally:
            _caller.reset(token)
        part.cpu += time.thread_time() - part.resumed
        left, on = time.perf_counter(), _place(awaited)
        thrown = None
        try:
            value = yield yielded
        except BaseException as error:
            thrown = error
        took = time.perf_counter() - left
        part.waited += took
        if on in part.waits or len(part.waits) < 8:
            part.waits[on] = part.waits.get(on, 0.0) + took
        part.resumed = time.thread_time()


def _place(awaited: Any) -> str:
    """Where in this program the coroutine awaits."""
    place = ""
    for _ in range(32):
        frame = getattr(awaited, "cr_frame", None)
        file = _file(frame.f_code.co_filename) if frame is not None else ""
        if frame is not None and file.startswith("glasslet/") and not file.startswith("glasslet/calls/"):
            place = f"{file}:{frame.f_lineno or frame.f_code.co_firstlineno} {frame.f_code.co_name}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
        if awaited is None:
            break
    return place


def _file(name: str) -> str:
    return f"glasslet/{name.rpartition('/glasslet/')[2]}" if "/glasslet/" in name else name
