"""A gRPC server that answers CRI calls as a test says: for what a healthy runtime cannot be made to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message

from glasslet.runtime.cri._generated import containerd_events_pb2, image_pb2, runtime_pb2
from glasslet.runtime.cri.calls import Method, methods_of

Answer = Message | Exception | Callable[[Any], Awaitable[Message]]
HEALTHY: dict[str, Answer] = {
    "Version": runtime_pb2.VersionResponse(
        version="0.1.0", runtime_name="scripted", runtime_version="1.2.3", runtime_api_version="v1"
    ),
    "ImageFsInfo": image_pb2.ImageFsInfoResponse(),
}


class Status(Exception):
    """An answer that is a gRPC status."""

    def __init__(self, code: grpc.StatusCode, message: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class ScriptedCRI:
    """Serves `runtime.v1`, or another package name, with the given answers; anything else is UNIMPLEMENTED.

    `requests` holds what arrived, by verb; `deadlines` the seconds that the last caller of a verb gave it. An answer
    that is an asyncio.Queue of messages serves a stream.
    """

    def __init__(self, answers: dict[str, Any] | None = None, *, package: str = "runtime.v1") -> None:
        self.answers: dict[str, Any] = {**HEALTHY, **(answers or {})}
        self.package = package
        self.requests: dict[str, list[Any]] = {}
        self.deadlines: dict[str, float | None] = {}
        self.containerd_events: asyncio.Queue[containerd_events_pb2.Envelope | Exception] | None = None

    @asynccontextmanager
    async def serving(self, socket: Path) -> AsyncIterator[str]:
        """Listens on the socket meanwhile; gives the endpoint."""
        server = grpc.aio.server()
        for service in ("RuntimeService", "ImageService"):
            handlers = {
                name: self._handler(name, method)
                for name, method in methods_of(service).items()
                if name in self.answers
            }
            generic = grpc.method_handlers_generic_handler(f"{self.package}.{service}", handlers)
            server.add_generic_rpc_handlers((generic,))
        if self.containerd_events is not None:
            server.add_generic_rpc_handlers((self._containerd_handler(),))
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        try:
            yield f"unix://{socket}"
        finally:
            await server.stop(None)

    def _handler(self, name: str, method: Method) -> Any:
        answer = self.answers[name]

        async def unary(request: Message, context: Any) -> Message:
            self.requests.setdefault(name, []).append(request)
            self.deadlines[name] = context.time_remaining()
            found = await answer(request) if callable(answer) else answer
            if isinstance(found, Status):
                await context.abort(found.code, found.message)
            assert isinstance(found, Message)
            return found

        async def stream(request: Message, context: Any) -> AsyncIterator[Message]:
            while True:
                message = await answer.get()
                if isinstance(message, Status):
                    await context.abort(message.code, message.message)
                yield message

        if isinstance(answer, asyncio.Queue):
            return grpc.unary_stream_rpc_method_handler(
                stream,
                request_deserializer=method.request.FromString,
                response_serializer=method.response.SerializeToString,
            )
        return grpc.unary_unary_rpc_method_handler(
            unary,
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )

    def _containerd_handler(self) -> Any:
        events = self.containerd_events
        assert events is not None

        async def subscribe(_: Message, context: Any) -> AsyncIterator[Message]:
            while True:
                event = await events.get()
                if isinstance(event, Status):
                    await context.abort(event.code, event.message)
                assert isinstance(event, Message)
                yield event

        handler = grpc.unary_stream_rpc_method_handler(
            subscribe,
            request_deserializer=containerd_events_pb2.SubscribeRequest.FromString,
            response_serializer=containerd_events_pb2.Envelope.SerializeToString,
        )
        return grpc.method_handlers_generic_handler("containerd.services.events.v1.Events", {"Subscribe": handler})
