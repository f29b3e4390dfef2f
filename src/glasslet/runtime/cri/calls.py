"""The one edge that every CRI call passes: deadline, record, metrics, error translation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

import grpc
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from grpc.aio import AioRpcError, Channel

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.record.way import CRI, NO_STOPS, PodHolder
from glasslet.runtime.cri._generated import image_pb2, runtime_pb2
from glasslet.runtime.cri.status_codes import translate
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import UNREADABLE, RuntimeCallError, RuntimeRejected
from glasslet.telemetry.tracing.spans import metadata, span

MAKING: Final = frozenset({Verb.RUN_POD_SANDBOX, Verb.CREATE_CONTAINER, Verb.START_CONTAINER})
"""Calls that a runtime may leave half done when its caller turns away (containerd: a task that is never started and
that no call removes)."""
LET_FINISH: Final = 5.0
"""Seconds that such a call has to end when its caller is cancelled: a pod deleted while it starts, TERM."""


_HELD_EARLIER: Final = frozenset({Verb.PULL_IMAGE})
"""Calls that pods are held before where they take no place in a queue yet."""


class RuntimeMetrics(Protocol):
    """Counts and times calls (`kubelet_runtime_operations*`)."""

    def operation(self, verb: Verb, seconds: float, error_kind: str | None) -> None:
        """One call ended. `error_kind`: the class of the error, None when it succeeded."""


class Calls:
    """Calls of one service over one channel. Requests and answers are protobuf messages of `methods_of`."""

    def __init__(
        self,
        *,
        channel: Channel,
        service: str,
        recorder: Recorder,
        metrics: RuntimeMetrics,
        stops: PodHolder = NO_STOPS,
    ) -> None:
        self._service = f"runtime.v1.{service}"
        self._recorder = recorder
        self._stops = stops
        self._metrics = metrics
        self._stubs: dict[str, Any] = {}
        self._answers: dict[str, type[Message]] = {}
        for name, method in methods_of(service).items():
            kind = channel.unary_stream if name == Verb.GET_CONTAINER_EVENTS else channel.unary_unary
            # Answers are taken as bytes: the library would log what it cannot decode and hand on None.
            self._stubs[name] = kind(method.path, request_serializer=method.request.SerializeToString)
            self._answers[name] = method.response

    def call(self, verb: Verb, request: Message, *, timeout: float | None) -> Coroutine[Any, Any, Any]:
        """The answer, or a RuntimeCallError. `timeout` in seconds; None waits for as long as it takes."""
        if self._stops.armed and verb not in _HELD_EARLIER:
            return self._held_call(verb, request, timeout)
        return self._call(verb, request, timeout)

    async def _held_call(self, verb: Verb, request: Message, timeout: float | None) -> Any:
        await self._stops.at(f"{CRI}{verb}", facts=lambda: {"request": request})
        answer = await self._call(verb, request, timeout)
        await self._stops.at(f"{CRI}{verb}", after=True, facts=lambda: {"request": request})
        return answer

    async def _call(self, verb: Verb, request: Message, timeout: float | None) -> Any:
        started = time.perf_counter()
        failure: RuntimeCallError | None = None
        with (
            self._recorder.wait(WaitKind.CRI_CALL, on=verb.value),
            span(f"{self._service}/{verb}", client=True),
        ):
            try:
                asked = self._stubs[verb](request, timeout=timeout, metadata=metadata())
                return self._answers[verb].FromString(await (_to_the_end(asked) if verb in MAKING else asked))
            except DecodeError as error:
                failure = unreadable(verb)
                raise failure from error
            except AioRpcError as error:
                late = timeout is not None and time.perf_counter() - started >= timeout - _CLOCKS_DIFFER
                failure = _failure(verb, error, gave_up_after=timeout if late else None)
                raise failure from error
            finally:
                kind = type(failure).__name__ if failure is not None else None
                self._metrics.operation(verb, time.perf_counter() - started, kind)

    async def stream(self, verb: Verb, request: Message) -> AsyncGenerator[Any, None]:
        """The answers of a stream, until it breaks. Ends without an error only when the runtime closed it."""
        started = time.perf_counter()
        failure: RuntimeCallError | None = None
        call = self._stubs[verb](request)
        try:
            async for answer in call:
                yield self._answers[verb].FromString(answer)
        except DecodeError as error:
            failure = unreadable(verb)
            raise failure from error
        except AioRpcError as error:
            failure = _failure(verb, error)
            raise failure from error
        finally:
            call.cancel()
            kind = type(failure).__name__ if failure is not None else None
            self._metrics.operation(verb, time.perf_counter() - started, kind)


async def _to_the_end(asked: Awaitable[bytes]) -> bytes:
    """The answer. A cancellation takes effect once the call has ended, or has had its time for that."""
    call = asyncio.ensure_future(asked)
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        await asyncio.wait({call}, timeout=LET_FINISH)
        raise
    finally:
        if not call.cancel() and not call.cancelled():
            call.exception()  # retrieved, so that the loop does not log it


def unreadable(verb: Verb) -> RuntimeRejected:
    """The error for an answer that is no message of the protocol."""
    return RuntimeRejected(verb, "the runtime's answer cannot be decoded", code=UNREADABLE)


_CLOCKS_DIFFER = 0.01
"""Seconds by which the gRPC library's clock may think a deadline passed earlier than ours."""


def _failure(verb: Verb, error: AioRpcError, *, gave_up_after: float | None = None) -> RuntimeCallError:
    """The error for a status. When our own deadline passed, the library's message is replaced."""
    code, words = error.code(), error.details() or ""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED and gave_up_after is not None:
        words = f"no answer within {gave_up_after:g} s"
    return translate(verb, code if isinstance(code, grpc.StatusCode) else grpc.StatusCode.UNKNOWN, words)


class Method(NamedTuple):
    """One RPC."""

    path: str
    request: type[Message]
    response: type[Message]


def methods_of(service: str) -> dict[str, Method]:
    """All RPCs of `RuntimeService` or `ImageService`, by name."""
    for module in (runtime_pb2, image_pb2):
        if (found := module.DESCRIPTOR.services_by_name.get(service)) is not None:
            return {
                method.name: Method(
                    f"/{found.full_name}/{method.name}",
                    GetMessageClass(method.input_type),
                    GetMessageClass(method.output_type),
                )
                for method in found.methods
            }
    raise KeyError(service)


@contextmanager
def refusing_unencodable(verb: Verb) -> Iterator[None]:
    """Turns an error of building the request into a refusal of the call: a number out of range, text that is not
    Unicode, an unknown enum name."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise RuntimeRejected(verb, f"the CRI cannot carry a value: {error}", code="INVALID_ARGUMENT") from error
