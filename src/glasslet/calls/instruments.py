"""How calls are noticed, only while a trace is on: `sys.monitoring` from Python 3.12 on, a trace function before that.

    Monitoring      events of the agent's own functions alone; the scope decides at each whether it is for the pod
    TraceFunction   is set for the steps of the event loop and the threads that work for the pod, and for no others

Both report to a `CallLog`. Neither sees libraries.
"""

from __future__ import annotations

import asyncio
import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import partial
from types import CodeType, FrameType
from typing import Any, Protocol

from glasslet.calls.log import CallLog, OwnFiles, all_code
from glasslet.concurrency.carried import accompany, stop_accompanying
from glasslet.record.recorder import current_scope, pod_of, stop_watching_scopes, watch_scopes

_RESUME = dis.opmap.get("RESUME", -1)
_YIELD = dis.opmap["YIELD_VALUE"]
_RETURN = dis.opmap["RETURN_VALUE"]
_NAME = "glasslet calls"


class InstrumentTaken(Exception):
    """Another tool (a debugger, a profiler) uses the interpreter's only place for a tracer."""


class Instrument(Protocol):
    """Notices calls from `install` to `remove`, both called in the event loop's thread."""

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Raises InstrumentTaken."""

    def remove(self) -> None: ...


def instrument_for(log: CallLog, namespace: str, name: str) -> Instrument:
    """The instrument of this Python version, for one pod by name."""
    if sys.version_info >= (3, 12):
        return Monitoring(log, namespace, name)
    return TraceFunction(log, namespace, name)


class _Common:
    """The pod, and the bonds between a call and the tasks and threads that it starts."""

    def __init__(self, log: CallLog, namespace: str, name: str) -> None:
        self._log = log
        self._pod = (namespace, name)
        self._files = OwnFiles()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._factory: Any = None
        self._companion: Any = None

    def _bind(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        before = self._factory = loop.get_task_factory()
        log = self._log

        def make(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
            task = before(loop, coro, **options) if before else asyncio.Task(coro, loop=loop, **options)
            if isinstance(task, asyncio.Task):
                log.created(task)
            return task

        loop.set_task_factory(make)
        # One bound method object: the same one is taken back.
        self._companion = self._in_thread
        accompany(self._companion)

    def _unbind(self) -> None:
        stop_accompanying(self._companion)
        if self._loop is not None:
            self._loop.set_task_factory(self._factory)

    def _in_scope(self) -> bool:
        pod = current_scope().pod
        return pod is not None and (pod.namespace, pod.name) == self._pod

    def _in_thread(self, work: Callable[[], object]) -> Callable[[], object]:
        if not self._in_scope():
            return work
        caller, log = self._log.current(), self._log

        def traced() -> object:
            log.handed(caller)
            try:
                with self._step():
                    return work()
            finally:
                log.handed(None)

        return traced

    @contextmanager
    def _step(self) -> Iterator[None]:
        yield


class TraceFunction(_Common):
    """By `sys.settrace`. Scheduled callbacks carry their context, and with it the pod: the event loop's `call_soon` is
    replaced by one that looks at it, so that all other steps run as without a trace."""

    def __init__(self, log: CallLog, namespace: str, name: str) -> None:
        super().__init__(log, namespace, name)
        self._bytes: dict[int, tuple[CodeType, bytes]] = {}
        self._active = False
        self._watcher: Any = None

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begins. Raises InstrumentTaken if there is a trace function already."""
        if sys.gettrace() is not None:
            raise InstrumentTaken("a debugger or another tracer is attached to the agent")
        self._active = True
        self._bind(loop)
        self._watcher = self._scope_changed
        watch_scopes(self._watcher)
        original = loop.call_soon

        def call_soon(callback: Any, *args: Any, context: Context | None = None) -> Any:
            context = context if context is not None else copy_context()
            pod = pod_of(context)
            if pod is not None and (pod.namespace, pod.name) == self._pod:
                return original(partial(self._run_step, callback), *args, context=context)
            return original(callback, *args, context=context)

        loop.call_soon = call_soon  # type: ignore[method-assign, assignment]

    def remove(self) -> None:
        """Ends."""
        self._active = False
        stop_watching_scopes(self._watcher)
        if self._loop is not None:
            del self._loop.call_soon
        self._unbind()
        if sys.gettrace() == self._called:
            sys.settrace(None)

    def _run_step(self, callback: Callable[..., object], *args: object) -> None:
        self._log.new_step()
        with self._step():
            callback(*args)

    @contextmanager
    def _step(self) -> Iterator[None]:
        if not self._active or sys.gettrace() is not None:
            yield
            return
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)

    def _scope_changed(self) -> None:
        """In the middle of a step the task began or ended work for a pod."""
        if not self._active:
            return
        mine = sys.gettrace() == self._called
        if self._in_scope():
            if sys.gettrace() is None:
                self._log.new_step()
                sys.settrace(self._called)
        elif mine:
            sys.settrace(None)

    def _called(self, frame: FrameType, event: str, arg: object) -> Any:
        if not self._active or not self._in_scope():
            # The step in which the task began its work for the pod is over: another has begun.
            sys.settrace(None)
            return None
        code = frame.f_code
        file = self._files.of(code)
        if not file:
            return None
        frame.f_trace_lines = False
        if not self._log.resumed(frame):
            raw, at = self._raw(code), frame.f_lasti
            # RESUME 0 is the start of a function; others follow a yield or an await.
            self._log.started(frame, file, afresh=raw[at] == _RESUME and raw[at + 1] & 3 == 0)
        return self._inside

    def _inside(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "exception":
            call = self._log.known(frame)
            if call is not None:
                call.failing, call.failing_at = arg[0].__name__, frame.f_lasti
        elif event == "return":
            self._left(frame, arg)
        return self._inside

    def _left(self, frame: FrameType, value: object) -> None:
        operation = self._raw(frame.f_code)[frame.f_lasti]
        call = self._log.known(frame)
        if call is None:
            return
        thrown = value is None and call.failing_at == frame.f_lasti
        if operation == _YIELD and not thrown:
            call.failing_at = -1
            self._log.suspended(frame, value)
        elif operation == _RETURN:
            self._log.returned(frame, value)
        else:
            self._log.raised(frame, call.failing)

    def _raw(self, code: CodeType) -> bytes:
        known = self._bytes.get(id(code))
        if known is None:
            known = self._bytes[id(code)] = code, code.co_code
        return known[1]


class Monitoring(_Common):
    """By `sys.monitoring`."""

    def __init__(self, log: CallLog, namespace: str, name: str) -> None:
        super().__init__(log, namespace, name)
        self._tool = -1
        self._code: list[CodeType] = []

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begins. Raises InstrumentTaken if no tool number is free."""
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        free = [number for number in (3, 4) if monitoring.get_tool(number) is None]
        if not free:
            raise InstrumentTaken("other tools watch the agent's calls")
        self._tool = free[0]
        monitoring.use_tool_id(self._tool, _NAME)
        self._bind(loop)
        events = monitoring.events
        local = {
            events.PY_START: self._py_start,
            events.PY_RESUME: self._py_resume,
            events.PY_RETURN: self._py_return,
            events.PY_YIELD: self._py_yield,
        }
        everywhere = {events.PY_THROW: self._py_throw, events.PY_UNWIND: self._py_unwind}
        for event, callback in (local | everywhere).items():
            monitoring.register_callback(self._tool, event, callback)
        modules = [module for name, module in list(sys.modules.items()) if name.startswith("glasslet.")]
        self._code = [code for code in all_code(modules) if self._files.of(code)]
        for code in self._code:
            monitoring.set_local_events(self._tool, code, sum(local))
        # Python has these for all code or for none; both are rare.
        monitoring.set_events(self._tool, sum(everywhere))

    def remove(self) -> None:
        """Ends."""
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        monitoring.set_events(self._tool, 0)
        for code in self._code:
            monitoring.set_local_events(self._tool, code, 0)
        for event in ("PY_START", "PY_RESUME", "PY_RETURN", "PY_YIELD", "PY_THROW", "PY_UNWIND"):
            monitoring.register_callback(self._tool, getattr(monitoring.events, event), None)
        monitoring.free_tool_id(self._tool)
        self._code = []
        self._unbind()

    def _py_start(self, code: CodeType, _offset: int) -> None:
        if self._in_scope() and (file := self._files.of(code)):
            self._log.started(sys._getframe(1), file)

    def _py_resume(self, code: CodeType, _offset: int) -> None:
        if self._in_scope():
            self._goes_on(code, sys._getframe(1))

    def _py_throw(self, code: CodeType, _offset: int, _error: BaseException) -> None:
        if self._in_scope():
            self._goes_on(code, sys._getframe(1))

    def _goes_on(self, code: CodeType, frame: FrameType) -> None:
        if (file := self._files.of(code)) and not self._log.resumed(frame):
            self._log.started(frame, file, afresh=False)

    def _py_return(self, _code: CodeType, _offset: int, value: object) -> None:
        if self._in_scope():
            self._log.returned(sys._getframe(1), value)

    def _py_yield(self, _code: CodeType, _offset: int, value: object) -> None:
        if self._in_scope():
            self._log.suspended(sys._getframe(1), value)

    def _py_unwind(self, _code: CodeType, _offset: int, error: BaseException) -> None:
        if self._in_scope():
            self._log.raised(sys._getframe(1), type(error).__name__)
