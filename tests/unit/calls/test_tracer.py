"""Calls of one pod are traced as they ran: callers, times, what was awaited, and nothing of other pods."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
import uvloop

from glasslet.answers.calls import Call, CallsAnswer, CallsRequest
from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.calls.log import CALLS, DEPTH, PACKAGE
from glasslet.calls.tracer import KEPT, LONGEST, PodTracer, TracedFacts, TraceRefused
from glasslet.concurrency.clock import SystemClock
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station, WaitKind
from glasslet.record.store import Record

WEB, OTHER = PodRef("shop", "web", PodUID("1")), PodRef("shop", "other", PodUID("2"))
SOURCE = """
import asyncio

async def start(name, threads, record):
    plan(3)
    async with asyncio.TaskGroup() as group:
        group.create_task(beside())
        with record.wait("cri call", on="RunPodSandbox"):
            await pull(name)
    for number in range(20):
        small(number)
    await threads.run(mount, "/mnt")
    try:
        fail()
    except KeyError:
        pass
    return [item async for item in items()]

async def pull(name):
    await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)
    return name

async def beside():
    await asyncio.sleep(0)
    inner()

def inner(): pass
def small(number): return number
def plan(depth): return depth and plan(depth - 1)
def mount(path): return path
def fail(): raise KeyError("secret")
def forever(depth): return depth and forever(depth - 1)

async def items():
    for number in range(2):
        await asyncio.sleep(0)
        yield number

async def until(event):
    try:
        await event.wait()
    finally:
        inner()
"""


class Agent:
    """Code that counts as the agent's own, a record, threads, and a tracer."""

    def __init__(self, code: Any) -> None:
        self.code = code
        self.record = Record()
        self.threads = OwnThreads("tests")
        self.ready = False
        waiting_on = lambda: self.record.waited_on(asyncio.current_task())  # noqa: E731
        facts = TracedFacts(waiting_on, lambda _namespace, _name: self.ready, lambda *_: self.record.last_step(WEB))
        self.tracer = PodTracer(clock=SystemClock(), facts=facts)

    async def start(self, pod: PodRef) -> None:
        """One pod's work."""
        with working_for(pod):
            await asyncio.sleep(0)
            await self.code.start("main", self.threads, self.record)

    async def traced(self, *work: Awaitable[object]) -> CallsAnswer:
        """The calls for WEB while this runs."""
        self.tracer.begin("shop", "web", CallsRequest())
        await asyncio.gather(*work)
        self.tracer.end()
        return self.answer()

    def answer(self) -> CallsAnswer:
        answer = self.tracer.answer("shop", "web")
        assert answer is not None
        return answer


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a test's coroutine function with an agent on each kind of event loop."""
    module = ModuleType("glasslet.sample")
    exec(compile(SOURCE, f"{PACKAGE}/pods/sample.py", "exec"), vars(module))
    for value in vars(module).values():
        if hasattr(value, "__module__"):
            value.__module__ = "glasslet.sample"
    monkeypatch.setitem(sys.modules, "glasslet.sample", module)

    def run(body: Callable[[Agent], Awaitable[Any]]) -> Any:
        async def whole() -> Any:
            agent = Agent(module)
            try:
                return await body(agent)
            finally:
                agent.tracer.end()

        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(whole())

    return run


Run = Callable[[Callable[[Agent], Awaitable[Any]]], Any]


def one(answer: CallsAnswer, function: str) -> Call:
    """The only call of a function."""
    (call,) = [call for call in answer.calls if call.function == function]
    return call


def caller(answer: CallsAnswer, function: str) -> str:
    parent = one(answer, function).parent
    return answer.calls[parent].function if parent >= 0 else ""


def test_each_call_stands_below_its_caller(run: Run) -> None:
    answer = run(lambda agent: agent.traced(agent.start(WEB)))
    assert caller(answer, "start") == ""
    for function in ("pull", "mount", "fail", "items", "beside"):
        assert caller(answer, function) == "start", function
    assert caller(answer, "inner") == "beside"
    plans = [call for call in answer.calls if call.function == "plan"]
    assert [answer.calls[call.parent].function for call in plans] == ["start", "plan", "plan", "plan"]


def test_a_coroutine_is_one_call_from_its_start_to_its_return(run: Run) -> None:
    pull = one(run(lambda agent: agent.traced(agent.start(WEB))), "pull")
    assert pull.end_ms is not None
    took = pull.end_ms - pull.start_ms
    assert took >= 19
    assert pull.waited_ms >= 19
    assert pull.cpu_ms + pull.waited_ms <= took + 1


def test_an_await_has_the_name_that_the_record_gives_it(run: Run) -> None:
    assert one(run(lambda agent: agent.traced(agent.start(WEB))), "pull").waited_on == "RunPodSandbox"


def test_arguments_results_places_and_errors_are_there(run: Run) -> None:
    answer = run(lambda agent: agent.traced(agent.start(WEB)))
    pull = one(answer, "pull")
    assert (pull.arguments, pull.result) == ("name=main", "<4 characters>")
    assert pull.file == "glasslet/pods/sample.py"
    assert pull.line == SOURCE.split("\n").index("async def pull(name):") + 1
    assert one(answer, "fail").outcome == "KeyError"
    assert "secret" not in repr(answer)
    assert one(answer, "start").result == "[0, 1]"


def test_short_repetitions_are_counted_in_one_call(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine may take the processor away in the middle of a short call.
    monkeypatch.setattr("glasslet.calls.log.FOLDED_SECONDS", 60.0)
    assert one(run(lambda agent: agent.traced(agent.start(WEB))), "small").repeated == 20


def test_calls_of_other_pods_are_not_seen(run: Run) -> None:
    answer = run(lambda agent: agent.traced(agent.start(OTHER), agent.start(WEB), agent.start(OTHER)))
    assert len([call for call in answer.calls if call.function == "start"]) == 1
    assert run(lambda agent: agent.traced(agent.start(OTHER))).calls == ()


def test_nothing_stays_installed(run: Run) -> None:
    async def body(agent: Agent) -> tuple[CallsAnswer, CallsAnswer]:
        loop = asyncio.get_running_loop()
        before = await agent.traced(agent.start(WEB))
        assert sys.gettrace() is None
        assert loop.get_task_factory() is None
        assert "call_soon" not in vars(loop)
        if sys.version_info >= (3, 12):
            assert sys.monitoring.get_tool(3) is None
        await agent.start(WEB)
        return before, agent.answer()

    before, after = run(body)
    assert before == after


def test_a_cancelled_call_ends_with_the_cancellation(run: Run) -> None:
    async def body(agent: Agent) -> CallsAnswer:
        async def work() -> None:
            with working_for(WEB):
                await asyncio.sleep(0)
                await agent.code.until(asyncio.Event())

        async def cancelled() -> None:
            task = asyncio.create_task(work())
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])

        return await agent.traced(cancelled())

    answer = run(body)
    assert one(answer, "until").outcome == "CancelledError"
    assert caller(answer, "inner") == "until"


def test_a_call_that_is_under_way_is_shown_without_an_end(run: Run) -> None:
    async def body(agent: Agent) -> CallsAnswer:
        async def work() -> None:
            with working_for(WEB), agent.record.wait(WaitKind.CRI_CALL, on="PullImage"):
                await asyncio.sleep(0)
                await agent.code.until(asyncio.Event())

        agent.tracer.begin("shop", "web", CallsRequest())
        task = asyncio.create_task(work())
        await asyncio.sleep(0.02)
        answer = agent.answer()
        task.cancel()
        await asyncio.wait([task])
        return answer

    answer = run(body)
    assert answer.active
    until = one(answer, "until")
    assert until.end_ms is None
    assert until.waited_on == "PullImage"
    assert until.waited_ms > 10


def test_depth_and_number_of_calls_are_bounded(run: Run) -> None:
    async def body(agent: Agent) -> CallsAnswer:
        async def work() -> None:
            with working_for(WEB):
                await asyncio.sleep(0)
                for _ in range(CALLS // DEPTH + 10):
                    agent.code.forever(DEPTH + 10)

        return await agent.traced(work())

    answer = run(body)
    assert len(answer.calls) == CALLS
    assert answer.left_out > 0

    def depth(call: Call) -> int:
        found = 1
        while call.parent >= 0:
            call, found = answer.calls[call.parent], found + 1
        return found

    assert max(depth(call) for call in answer.calls) == DEPTH


def test_a_trace_ends_by_itself(run: Run) -> None:
    async def body(agent: Agent) -> CallsAnswer:
        agent.tracer.begin("shop", "web", CallsRequest(seconds=0.02))
        await agent.tracer.ended("shop", "web", within=10)
        return agent.answer()

    answer = run(body)
    assert not answer.active
    assert answer.end is not None


def test_a_trace_until_the_next_step_ends_when_the_pod_leaves_a_station(run: Run) -> None:
    async def body(agent: Agent) -> tuple[bool, bool]:
        with working_for(WEB):
            agent.record.passed(Station.SEEN)
            agent.tracer.begin("shop", "web", CallsRequest(seconds=100, until="step"))
            with agent.record.station(Station.SANDBOX):
                await asyncio.sleep(0.25)
                during = agent.tracer.traces("shop", "web")
        await agent.tracer.ended("shop", "web", within=10)
        return during, agent.tracer.traces("shop", "web")

    assert run(body) == (True, False)


def test_a_trace_ends_when_the_pod_is_ready(run: Run) -> None:
    async def body(agent: Agent) -> CallsAnswer:
        agent.tracer.begin("shop", "web", CallsRequest(seconds=100, until="Ready"))
        agent.ready = True
        await agent.tracer.ended("shop", "web", within=10)
        return agent.answer()

    assert not run(body).active


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (CallsRequest(seconds=0), "seconds"),
        (CallsRequest(seconds=LONGEST + 1), "seconds"),
        (CallsRequest(seconds=float("nan")), "seconds"),
        (CallsRequest(until="Running"), "until"),
    ],
)
def test_a_wrong_request_is_refused_with_its_field(run: Run, request_: CallsRequest, field: str) -> None:
    async def body(agent: Agent) -> None:
        with pytest.raises(TraceRefused) as refused:
            agent.tracer.begin("shop", "web", request_)
        assert refused.value.field == field

    run(body)


def test_one_pod_is_traced_at_a_time(run: Run) -> None:
    async def body(agent: Agent) -> None:
        agent.tracer.begin("shop", "web", CallsRequest())
        with pytest.raises(TraceRefused, match="shop/web"):
            agent.tracer.begin("shop", "other", CallsRequest())
        agent.tracer.begin("shop", "web", CallsRequest())

    run(body)


def test_the_last_traces_are_kept(run: Run) -> None:
    async def body(agent: Agent) -> list[bool]:
        for number in range(KEPT + 2):
            agent.tracer.begin("shop", f"pod-{number}", CallsRequest())
            agent.tracer.end()
        return [agent.tracer.answer("shop", f"pod-{number}") is not None for number in range(KEPT + 2)]

    assert run(body) == [False, False, *[True] * KEPT]


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="from Python 3.12 on the tracer does not use the trace function"
)
def test_a_debugger_is_not_pushed_aside(run: Run) -> None:
    async def body(agent: Agent) -> None:
        sys.settrace(lambda *_: None)
        try:
            with pytest.raises(TraceRefused, match="debugger"):
                agent.tracer.begin("shop", "web", CallsRequest())
        finally:
            sys.settrace(None)

    run(body)
