"""The calls of one trace while they happen: who called whom, when each began, ran, awaited and ended.

    log.started(frame)  log.resumed(frame)  log.suspended(frame, yielded)  log.returned(frame, value)  log.raised(...)

A coroutine is one call from its first start to its return, however often it awaits in between. Its CPU time is that of
its thread while it ran, its callees included. A leaf that repeats its elder sibling is counted there instead.
"""

from __future__ import annotations

import asyncio
import os.path
import threading
import time
from collections.abc import Callable, Iterable
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from types import CodeType, FrameType

from glasslet.answers.calls import Call
from glasslet.calls.short import arguments_of, result_of

CALLS = 5_000
"""Calls kept of one trace."""
DEPTH = 64
"""Calls inside each other."""
_WAITS = 8
"""Different things that one call may await, by name."""
FOLDED_SECONDS = 0.001
"""A longer call is shown by itself."""

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LEFT_ALONE = ("glasslet/calls/", "glasslet/concurrency/", "glasslet/record/", "glasslet/telemetry/")
"""The agent's bookkeeping, which would hide what it does."""


class OpenCall:
    """One call. Times in seconds; `resumed` is CPU time, None while it is suspended or over."""

    __slots__ = (
        "arguments", "awaits", "children", "code", "cpu", "end", "failing", "failing_at", "file", "frame",
        "last_child", "on", "outcome", "parent", "repeated", "result", "resumed", "start", "suspended", "waited",
        "waits",
    )  # fmt: skip

    def __init__(self, frame: FrameType, file: str, parent: OpenCall | None, start: float) -> None:
        self.frame: FrameType | None = frame
        self.code: CodeType = frame.f_code
        self.file = file
        self.parent = parent
        self.start = start
        self.end: float | None = None
        self.resumed: float | None = None
        self.suspended: float | None = None
        self.cpu = 0.0
        self.waited = 0.0
        self.waits: dict[str, float] = {}
        self.on = ""
        self.arguments = ""
        self.result = ""
        self.outcome = ""
        self.failing = ""
        self.failing_at = -1
        self.repeated = 1
        self.children = 0
        self.last_child: OpenCall | None = None
        self.awaits = bool(self.code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))


class _Thread(threading.local):
    """Of one thread: its open calls, the call that handed it work, and what its present suspension waits for."""

    def __init__(self) -> None:
        self.stack: list[OpenCall] = []
        self.handed_by: OpenCall | None = None
        self.on: str | None = None
        self.task: asyncio.Task[object] | None = None


class CallLog:
    """`waiting_on`: what the current task waits for, "" if it has no name. Methods may be called in any thread."""

    def __init__(self, *, waiting_on: Callable[[], str], calls: int = CALLS, depth: int = DEPTH) -> None:
        self._waiting_on = waiting_on
        self._most = calls
        self._deepest = depth
        self._began = time.perf_counter()
        self._calls: list[OpenCall] = []
        self._open: dict[FrameType, OpenCall] = {}
        self._creators: dict[asyncio.Task[object], OpenCall] = {}
        self._here = _Thread()
        self._lock = threading.Lock()
        self._roots: dict[int, OpenCall] = {}
        self.left_out = 0

    # -- the instrument's side

    def started(self, frame: FrameType, file: str, *, afresh: bool = True) -> None:
        """A function begins; not `afresh`: it began before the trace did."""
        stack = self._turn()
        if len(self._calls) >= self._most or len(stack) >= self._deepest:
            self.left_out += 1
            return
        call = OpenCall(frame, file, stack[-1] if stack else self._creator(), time.perf_counter())
        if afresh:
            call.arguments = arguments_of(frame, file)
        with self._lock:
            self._calls.append(call)
        if call.parent is not None:
            call.parent.children += 1
        self._open[frame] = call
        stack.append(call)
        call.resumed = time.thread_time()

    def resumed(self, frame: FrameType) -> bool:
        """A suspended function goes on. False: it is unknown here."""
        call = self._open.get(frame)
        if call is None:
            return False
        if call.suspended is not None:
            took = time.perf_counter() - call.suspended
            call.suspended = None
            call.waited += took
            on = call.on if call.on in call.waits or len(call.waits) < _WAITS else ""
            call.waits[on] = call.waits.get(on, 0.0) + took
        self._turn().append(call)
        call.resumed = time.thread_time()
        return True

    def suspended(self, frame: FrameType, yielded: object) -> None:
        """It awaits, or gives a value to the caller of a generator."""
        call = self._leave(frame)
        if call is None or not call.awaits or type(yielded).__name__ == "async_generator_wrapped_value":
            return
        here = self._here
        if here.on is None:
            here.on = self._waiting_on() or _awaited(yielded)
        call.on = here.on
        call.suspended = time.perf_counter()

    def returned(self, frame: FrameType, value: object) -> None:
        """It ended with a result."""
        call = self._leave(frame)
        if call is not None:
            call.result = result_of(value, call.code, call.file)
            self._end(call)

    def raised(self, frame: FrameType, error: str) -> None:
        """It ended with an exception of this class."""
        call = self._leave(frame)
        if call is not None:
            # A generator that its user has closed has ended, not failed.
            call.outcome = "" if error == "GeneratorExit" else error
            self._end(call)

    def known(self, frame: FrameType) -> OpenCall | None:
        """The open call of this frame."""
        return self._open.get(frame)

    def current(self) -> OpenCall | None:
        """The innermost call of this thread."""
        stack = self._here.stack
        return stack[-1] if stack else self._here.handed_by

    def created(self, task: asyncio.Task[object]) -> None:
        """The innermost call made this task: it is the caller of what the task runs."""
        call = self.current()
        if call is not None:
            self._creators[task] = call

    def handed(self, call: OpenCall | None) -> None:
        """This thread works for that call from now on; None: for none."""
        self._here.handed_by = call
        self._here.stack.clear()

    def new_step(self) -> None:
        """This thread begins with something else."""
        self._here.stack.clear()

    # -- the reader's side

    def close(self) -> None:
        """Nothing more comes: lets go of all frames."""
        for call in list(self._open.values()):
            call.frame = None
        self._open.clear()
        self._creators.clear()
        self._here.stack.clear()

    def answer(self) -> tuple[Call, ...]:
        """All calls in the order of their starts."""
        now = time.perf_counter()
        with self._lock:
            calls = list(self._calls)
        numbers = {id(call): number for number, call in enumerate(calls)}
        return tuple(self._shown(call, numbers, now) for call in calls)

    def _shown(self, call: OpenCall, numbers: dict[int, int], now: float) -> Call:
        waits, waited = dict(call.waits), call.waited
        suspended = call.suspended
        if suspended is not None and call.end is None:
            waited += now - suspended
            waits[call.on] = waits.get(call.on, 0.0) + now - suspended
        return Call(
            parent=numbers.get(id(call.parent), -1) if call.parent is not None else -1,
            function=call.code.co_qualname.replace("<locals>.", ""),
            file=call.file,
            line=call.code.co_firstlineno,
            start_ms=_ms(call.start - self._began),
            end_ms=_ms(call.end - self._began) if call.end is not None else None,
            cpu_ms=_ms(call.cpu),
            waited_ms=_ms(waited),
            waited_on=max(waits, key=lambda on: (on != "", waits[on]), default=""),
            arguments=call.arguments,
            result=call.result,
            outcome=call.outcome,
            repeated=call.repeated,
        )

    # -- inside

    def _turn(self) -> list[OpenCall]:
        """The stack of this thread; a new one if another task runs than before."""
        here, task = self._here, _current_task()
        here.on = None
        if task is not here.task:
            here.task = task
            here.stack.clear()
        return here.stack

    def _creator(self) -> OpenCall | None:
        here = self._here
        if here.handed_by is not None:
            return here.handed_by
        return self._creators.get(here.task) if here.task is not None else None

    def _leave(self, frame: FrameType) -> OpenCall | None:
        call = self._open.get(frame)
        if call is None:
            return None
        stack = self._here.stack
        if stack and stack[-1] is call:
            stack.pop()
        elif call in stack:
            del stack[stack.index(call) :]
        if call.resumed is not None:
            call.cpu += time.thread_time() - call.resumed
            call.resumed = None
        return call

    def _end(self, call: OpenCall) -> None:
        call.end = time.perf_counter()
        frame, call.frame = call.frame, None
        if frame is not None:
            self._open.pop(frame, None)
        with self._lock:
            if not self._folds(call):
                if call.parent is not None:
                    call.parent.last_child = call
                else:
                    self._roots[threading.get_ident()] = call

    def _folds(self, call: OpenCall) -> bool:
        """Counts the call with its elder sibling if both are short leaves of one function."""
        parent = call.parent
        elder = parent.last_child if parent is not None else self._roots.get(threading.get_ident())
        if elder is None or len(self._calls) < 2 or self._calls[-1] is not call or self._calls[-2] is not elder:
            return False
        if elder.code is not call.code or elder.outcome != call.outcome or elder.children or call.children:
            return False
        if call.end is None or call.end - call.start > FOLDED_SECONDS or call.waited or elder.waited:
            return False
        self._calls.pop()
        elder.repeated += 1
        elder.cpu += call.cpu
        elder.end = call.end
        if parent is not None:
            parent.children -= 1
        return True


class OwnFiles:
    """Which code is traced: the agent's own functions, without its bookkeeping."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}

    def of(self, code: CodeType) -> str:
        """The file as `glasslet/...`, "" for code that is not traced."""
        if code.co_name[:1] == "<":
            return ""
        name = code.co_filename
        shown = self._shown.get(name)
        if shown is None:
            shown = self._shown[name] = _file(name)
        return shown


def all_code(modules: Iterable[object]) -> list[CodeType]:
    """The code of every function of these modules that is defined in one of their files."""
    found: dict[int, CodeType] = {}
    for module in modules:
        for value in list(vars(module).values()):
            _collect(value, found)
    return [code for code in found.values() if code is not _NOTHING]


def _collect(value: object, found: dict[int, CodeType]) -> None:
    value = getattr(value, "__func__", value)
    if isinstance(value, property):
        for part in (value.fget, value.fset):
            _collect(part, found)
        return
    if isinstance(value, type) and value.__module__.startswith("glasslet."):
        if id(value) not in found:
            found[id(value)] = _NOTHING
            for item in list(vars(value).values()):
                _collect(item, found)
        return
    for layer in (value, getattr(value, "__wrapped__", None)):
        code = getattr(layer, "__code__", None)
        if isinstance(code, CodeType):
            _collect_code(code, found)


def _collect_code(code: CodeType, found: dict[int, CodeType]) -> None:
    if id(code) in found:
        return
    found[id(code)] = code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _collect_code(inner, found)


_NOTHING = compile("", "<nothing>", "exec")


def _file(name: str) -> str:
    if not name.startswith(PACKAGE + "/"):
        return ""
    shown = f"glasslet{name[len(PACKAGE) :]}"
    return "" if shown.startswith(_LEFT_ALONE) or "/_generated/" in shown else shown


def _current_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _awaited(yielded: object) -> str:
    """A name for what a coroutine gave to the event loop."""
    if isinstance(yielded, asyncio.Task):
        return f"task {yielded.get_name()}"[:120]
    return "its next turn" if yielded is None else ""


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
