"""A light client of the API server for benchmarks: requests, and a watch that notes when something was first seen.

It decodes only what it asks about: its own work is on the same cores as what is measured.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
import yaml

NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DELETED, READY, FAILED = "deleted", "ready", "failed"
EXEC_PROTOCOL, STATUS_CHANNEL = "v5.channel.k8s.io", 3

Fact = tuple[str, str]
"""An object's name and a fact about it."""


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    restart_count: int = 0
    container_id: str = msgspec.field(default="", name="containerID")
    state: dict[str, Any] = {}


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    conditions: list[_Condition] = []
    container_statuses: list[_Container] = []


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class Seen(msgspec.Struct):
    """The facts about a pod or node that a benchmark waits for."""

    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct):
    type: str
    object: Seen


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[Seen] = []


def running(restarts: int) -> str:
    """The fact "runs, after this many restarts"."""
    return f"running after {restarts}"


def facts(kind: str, seen: Seen) -> Iterable[str]:
    """The facts in an event. `kind`: ADDED, MODIFIED, DELETED."""
    if kind == "DELETED":
        yield DELETED
        return
    if any(one.type == "Ready" and one.status == "True" for one in seen.status.conditions):
        yield READY
    if seen.status.phase == "Failed":
        yield FAILED
    for container in seen.status.container_statuses:
        if "running" in container.state:
            yield running(container.restart_count)


class Watch:
    """The facts seen about one kind of object, each with the time of its first sight (`time.monotonic`)."""

    def __init__(self, version: str = "") -> None:
        self.version = version
        """The resource version of the newest event."""
        self.objects: dict[str, Seen] = {}
        self._first: dict[Fact, float] = {}
        self._waiting: dict[Fact, asyncio.Event] = {}
        self._ended: BaseException | None = None

    def told(self, line: bytes) -> None:
        """Takes one event of the API server."""
        now = time.monotonic()
        event = msgspec.json.decode(line, type=_Event)
        if event.type == "ERROR":
            raise ConnectionError(f"the watch failed: {line[:300]!r}")
        name, self.version = event.object.metadata.name, event.object.metadata.resource_version
        self.objects[name] = event.object
        for fact in facts(event.type, event.object):
            if (name, fact) not in self._first:
                self._first[name, fact] = now
                if (waiting := self._waiting.pop((name, fact), None)) is not None:
                    waiting.set()
        if event.type == "DELETED":
            del self.objects[name]

    def forget(self, names: Iterable[str]) -> None:
        """Objects of these names come again: their facts count anew."""
        gone = set(names)
        self._first = {fact: at for fact, at in self._first.items() if fact[0] not in gone}

    def ended(self, why: BaseException) -> None:
        """Ends all waits: no more events come."""
        self._ended = why
        for waiting in self._waiting.values():
            waiting.set()

    async def first(self, name: str, fact: str) -> float:
        """Returns when the fact was first seen; waits for it."""
        while (name, fact) not in self._first:
            if self._ended is not None:
                raise ConnectionError("the watch ended") from self._ended
            await self._waiting.setdefault((name, fact), asyncio.Event()).wait()
        return self._first[name, fact]

    async def all_of(self, names: Iterable[str], fact: str, seconds: float = 300.0) -> list[float]:
        """Returns when each object first had the fact. Raises TimeoutError that names the missing ones."""
        wanted = list(names)
        try:
            async with asyncio.timeout(seconds):
                return [await self.first(name, fact) for name in wanted]
        except TimeoutError:
            missing = [name for name in wanted if (name, fact) not in self._first]
            raise TimeoutError(f"{len(missing)} not {fact} within {seconds:.0f} s: {missing[:3]}") from None


class ClusterClient:
    """Requests with administrator rights. A context manager: its watches end with it."""

    def __init__(self, kubeconfig: str) -> None:
        with open(kubeconfig) as file:
            text = yaml.safe_load(file)
        cluster, user = text["clusters"][0]["cluster"], text["users"][0]["user"]
        self._server = cluster["server"]
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._tls.load_cert_chain(user["client-certificate"], user["client-key"])
        self._tasks = asyncio.TaskGroup()
        self._watching: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> ClusterClient:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=16)
        self._session = aiohttp.ClientSession(self._server, connector=connector)
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> None:
        for task in self._watching:
            task.cancel()
        try:
            await self._tasks.__aexit__(*failure)
        finally:
            await self._session.close()

    async def request(self, method: str, path: str, body: object = None, allowed: tuple[int, ...] = ()) -> bytes:
        """Sends a request and returns the answer. Raises AssertionError for a status that is not allowed."""
        async with self._session.request(method, path, json=body) as answer:
            data = await answer.read()
            assert answer.ok or answer.status in allowed, f"{method} {path}: {answer.status} {data[:300]!r}"
            return data

    async def watch(self, path: str) -> Watch:
        """Starts a watch and returns when it has listed what exists."""
        listed = msgspec.json.decode(await self.request("GET", path), type=_List)
        seen = Watch(listed.metadata.resource_version)
        seen.objects = {item.metadata.name: item for item in listed.items}
        answer = await self._watch_from(path, seen.version)
        self._watching.append(self._tasks.create_task(self._follow(path, answer, seen), name=f"watch {path}"))
        return seen

    async def _watch_from(self, path: str, version: str) -> aiohttp.ClientResponse:
        query = urlencode({"watch": "1", "resourceVersion": version, "timeoutSeconds": 7200})
        no_limit = aiohttp.ClientTimeout(total=None)
        return await self._session.get(f"{path}?{query}", timeout=no_limit, read_bufsize=2**22)

    async def create(self, pod: dict[str, Any]) -> float:
        """Sends the request; returns when it was sent."""
        began = time.monotonic()
        await self.request("POST", PODS, pod)
        return began

    async def delete(self, name: str, query: str = "") -> float:
        """Sends the request; returns when it was sent."""
        began = time.monotonic()
        await self.request("DELETE", f"{PODS}/{name}{query}", allowed=(404,))
        return began

    async def exec_true(self, name: str) -> float:
        """Runs a command as kubectl does; returns the seconds until the status Success."""
        began = time.monotonic()
        path = f"{PODS}/{name}/exec?command=true&stdout=true&stderr=true"
        async with self._session.ws_connect(path, protocols=(EXEC_PROTOCOL,)) as socket:
            async for message in socket:
                if message.type is aiohttp.WSMsgType.BINARY and message.data[:1] == bytes([STATUS_CHANNEL]):
                    status = json.loads(message.data[1:])
                    assert status["status"] == "Success", f"exec: {status}"
                    return time.monotonic() - began
        raise AssertionError("exec: closed without a status")

    async def read_log(self, name: str) -> tuple[int, float]:
        """Reads a container's whole log; returns bytes and seconds."""
        began, size = time.monotonic(), 0
        no_limit = aiohttp.ClientTimeout(total=None)
        async with self._session.get(f"{PODS}/{name}/log", timeout=no_limit) as answer:
            assert answer.ok, f"log: {answer.status}"
            async for part in answer.content.iter_any():
                size += len(part)
        return size, time.monotonic() - began

    async def in_parallel(self, what: Callable[[str], Any], names: Iterable[str]) -> list[Any]:
        """Calls for every name, as many at once as there are connections."""
        return await asyncio.gather(*(what(name) for name in names))

    async def _follow(self, path: str, answer: aiohttp.ClientResponse, seen: Watch) -> None:
        """Follows the watch to the end. One that the server closes continues where it was."""
        try:
            while True:
                async with answer:
                    async for line in answer.content:
                        seen.told(line)
                answer = await self._watch_from(path, seen.version)
        except (aiohttp.ClientError, OSError, msgspec.DecodeError) as failure:
            seen.ended(failure)
