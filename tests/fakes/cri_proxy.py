"""A gRPC proxy between agent and containerd that spoils calls as a test says: it knows bytes only.

async with CRIProxy(containerd.socket).serving(folder / "cri.sock") as proxy:
    proxy.add(Fault(HANG, verb="CreateContainer", about=b"stuck"))   # requests that hold these bytes
    proxy.add(Fault(fail_with(grpc.StatusCode.INTERNAL), share=0.3))
    proxy.cut_streams()
    proxy.heal()                                                     # what hangs goes on
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

STREAMS = ("GetContainerEvents", "Subscribe", "List", "Read")
LARGEST = 16 * 1024 * 1024
OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.max_send_message_length", LARGEST),
    ("grpc.use_local_subchannel_pool", 1),
)


class Refusal(Exception):
    """A call that is to end with this status."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


@dataclass(frozen=True)
class Call:
    """One call on its way. `forward` asks the runtime; `healed` ends when the faults do."""

    verb: str
    request: bytes
    forward: Callable[[], Awaitable[bytes]]
    healed: Callable[[], Awaitable[object]]
    dice: random.Random


Spoil = Callable[[Call], Awaitable[bytes]]


async def hang(call: Call) -> bytes:
    """No answer, and nothing done, until the faults end; then it is done after all."""
    await call.healed()
    return await call.forward()


async def garbage(call: Call) -> bytes:
    """Done, but the answer is noise."""
    await call.forward()
    return call.dice.randbytes(64)


async def empty(call: Call) -> bytes:
    """Done, but the answer says nothing: every field has its default."""
    await call.forward()
    return b""


async def lost(call: Call) -> bytes:
    """Done, but the answer gets lost on the way."""
    await call.forward()
    raise Refusal(grpc.StatusCode.UNAVAILABLE, "the connection broke before the answer")


def late(seconds: float) -> Spoil:
    """Done, and answered much later."""

    async def spoil(call: Call) -> bytes:
        answer = await call.forward()
        await asyncio.sleep(seconds)
        return answer

    return spoil


def fail_with(*codes: grpc.StatusCode) -> Spoil:
    """Not done: one of these codes."""

    async def spoil(call: Call) -> bytes:
        code = call.dice.choice(codes)
        raise Refusal(code, f"{call.verb} fails as the test says")

    return spoil


@dataclass
class Fault:
    """What happens to calls: all of a verb ("" is any), of those the ones that hold `about` and nothing of
    `others_than`, of those this share."""

    spoil: Spoil
    verb: str = ""
    about: bytes = b""
    share: float = 1.0
    verbs: frozenset[str] = field(default_factory=frozenset)
    others_than: frozenset[bytes] = field(default_factory=frozenset)

    def hits(self, verb: str, request: bytes, dice: random.Random) -> bool:
        """Whether it is this call's turn."""
        if self.verb not in ("", verb) or (self.verbs and verb not in self.verbs) or self.about not in request:
            return False
        if any(part in request for part in self.others_than):
            return False
        return self.share >= 1 or dice.random() < self.share


class CRIProxy(grpc.GenericRpcHandler):  # type: ignore[misc]
    """One proxy. `calls` counts what came through, `spoiled` what a fault hit, by verb."""

    def __init__(self, target: Path, *, seed: int = 1) -> None:
        self._target = target
        self._dice = random.Random(seed)
        self._faults: list[Fault] = []
        self._healed = asyncio.Event()
        self._streams: set[Any] = set()
        self._channel: Any = None
        self.calls: Counter[str] = Counter()
        self.spoiled: Counter[str] = Counter()

    @asynccontextmanager
    async def serving(self, socket: Path) -> AsyncIterator[CRIProxy]:
        """Listens meanwhile; `endpoint` is for the agent."""
        self.endpoint = f"unix://{socket}"
        self._channel = grpc.aio.insecure_channel(f"unix:{self._target}", options=OPTIONS)
        server = grpc.aio.server(options=OPTIONS)
        server.add_generic_rpc_handlers((self,))
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        try:
            yield self
        finally:
            self.heal()
            self.cut_streams()
            await server.stop(0.5)
            await self._channel.close()

    def add(self, *faults: Fault) -> None:
        """From now on, until `heal`."""
        self._faults.extend(faults)

    def heal(self) -> None:
        """Every call goes through again; those that hang go on."""
        self._faults.clear()
        self._healed.set()
        self._healed = asyncio.Event()

    def cut_streams(self) -> None:
        """Open streams break."""
        for stream in tuple(self._streams):
            stream.cancel()

    def service(self, details: Any) -> Any:
        """gRPC's hook: a handler for whatever is asked."""
        path, verb = details.method, details.method.rpartition("/")[2]

        async def unary(request: bytes, context: Any) -> bytes:
            return await self._unary(path, verb, request, context)

        async def stream(request: bytes, context: Any) -> AsyncIterator[bytes]:
            async for answer in self._stream(path, request, context):
                yield answer

        if verb in STREAMS:
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)

    async def _unary(self, path: str, verb: str, request: bytes, context: Any) -> bytes:
        self.calls[verb] += 1

        async def forward() -> bytes:
            answer: bytes = await self._channel.unary_unary(path)(request, timeout=context.time_remaining())
            return answer

        fault = next((one for one in self._faults if one.hits(verb, request, self._dice)), None)
        try:
            if fault is None:
                return await forward()
            self.spoiled[verb] += 1
            return await fault.spoil(Call(verb, request, forward, self._healed.wait, self._dice))
        except Refusal as refusal:
            return await context.abort(refusal.code, refusal.words)  # type: ignore[no-any-return]
        except grpc.aio.AioRpcError as error:
            return await context.abort(error.code(), error.details() or "")  # type: ignore[no-any-return]

    async def _stream(self, path: str, request: bytes, context: Any) -> AsyncIterator[bytes]:
        call = self._channel.unary_stream(path)(request)
        self._streams.add(call)
        try:
            async for answer in call:
                yield answer
        except asyncio.CancelledError:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the stream was cut")
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")
        finally:
            self._streams.discard(call)
            call.cancel()
