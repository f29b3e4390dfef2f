"""The agent's HTTP client: over its Unix socket, with the standard library only (for a quick start).

`kubectl glass` puts another client in its place, which asks the agents of a cluster: `cli/cluster`.
"""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from glasslet.answers.agent import AgentAnswer, ManifestProblem
from glasslet.answers.pods import PodsAnswer
from glasslet.answers.trace import RecordsAnswer
from glasslet.answers.wire import ErrorAnswer, WireMessage, decode, encode
from glasslet.cli.failure import AgentNotRunning, Failure

T = TypeVar("T", bound=WireMessage)

SOCKET = "glasslet.sock"
ROOT_DIRS = ("/var/lib/kubelet", "/var/lib/glasslet/kubelet")
"""The root folders to try without --root-dir: a cluster's agent, then the one that `glasslet up` starts."""
GLASS = "/glass/v1"
_CONNECT_SECONDS = 5.0
_CHUNK = 256 * 1024


class PodName(NamedTuple):
    """A pod's name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class AgentClient:
    """One agent, by its root folder. `place`: where its pods are, in words; `prefix`: before each path;
    `answer_seconds`: the most that an answer may take."""

    place = "on this node"
    prefix = GLASS
    answer_seconds = 60.0
    """A first answer may wait for a slow runtime; a dead agent closes the socket, which shows at once."""

    def __init__(self, root_dir: Path) -> None:
        self.root_dir = root_dir
        self.socket = root_dir / SOCKET

    def pod_names(self, typed: str) -> list[PodName]:
        """The pods that `typed` may mean: here, all that are on the node now."""
        return [PodName(row.namespace, row.name) for row in self.get("/pods", PodsAnswer).pods]

    def recorded_pod_names(self, typed: str) -> tuple[list[PodName], list[PodName]]:
        """As `pod_names`; then those of them or of earlier pods that have a record."""
        rows = self.get("/records", RecordsAnswer).records
        living = [PodName(row.namespace, row.name) for row in rows if row.alive]
        return living, [PodName(row.namespace, row.name) for row in rows]

    def broken_manifests(self) -> tuple[ManifestProblem, ...]:
        """Problems of manifests that no pod came of."""
        return self.get("/agent", AgentAnswer).broken_manifests

    def get(self, path: str, kind: type[T], **query: str) -> T:
        """The answer at `path` (`/pods`). Raises Failure with the agent's error, or AgentNotRunning."""
        return self._request("GET", _with_query(path, query), None, kind)

    def post(self, path: str, body: WireMessage | None, kind: type[T]) -> T:
        """The answer to a request with a body, or without one."""
        return self._request("POST", path, encode(body) if body is not None else b"", kind)

    def delete(self, path: str, kind: type[T]) -> T:
        """The answer to the removal of what is at `path`."""
        return self._request("DELETE", path, None, kind)

    def stream(self, path: str, **query: str) -> Iterator[bytes]:
        """The chunks of a text answer as they come, without a time limit."""
        with closing(self._connect()) as connection:
            response = self._send(connection, "GET", _with_query(path, query), None)
            if response.status != 200:
                raise self.refusal(response.status, response.read())
            if connection.sock is not None:
                connection.sock.settimeout(None)
            try:
                while chunk := response.read1(_CHUNK):
                    yield chunk
            except (http.client.IncompleteRead, ConnectionError) as error:
                raise Failure("the agent closed the connection; the log shown is not complete") from error

    def answers(self) -> bool:
        """Whether an agent accepts connections."""
        try:
            with closing(self._connect()):
                return True
        except AgentNotRunning:
            return False

    def refusal(self, status: int, data: bytes) -> Failure:
        """The failure that an answer with another status than 200 means."""
        return _refusal(status, data)

    def unreachable(self, why: str) -> Failure:
        """The failure that no answer means."""
        return AgentNotRunning(str(self.socket), why)

    def _request(self, method: str, path: str, body: bytes | None, kind: type[T]) -> T:
        with closing(self._connect()) as connection:
            response = self._send(connection, method, path, body)
            data = response.read()
        if response.status != 200:
            raise self.refusal(response.status, data)
        try:
            return decode(data, kind)
        except msgspec.MsgspecError as error:
            raise Failure(f"the agent's answer cannot be decoded (another version?): {error}") from error

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> http.client.HTTPResponse:
        try:
            connection.request(method, self.prefix + path, body=body, headers={"Content-Type": "application/json"})
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(f"it does not answer: {error or type(error).__name__}") from error

    def _connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("localhost")
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.settimeout(_CONNECT_SECONDS)
        try:
            _connect_unix(stream, self.socket)
        except OSError as error:
            stream.close()
            raise self.unreachable(error.strerror or str(error)) from error
        stream.settimeout(self.answer_seconds)
        connection.sock = stream
        return connection


AgentPlace = Path | AgentClient | None
"""What a command gets to find the agent by: its root folder, a client, or nothing."""


def find_agent(place: AgentPlace) -> AgentClient:
    """The agent at `place`, else the first in ROOT_DIRS that answers, else the one that answers anywhere on this
    machine, else the first in ROOT_DIRS with a socket. Raises Failure when several answer elsewhere."""
    if isinstance(place, AgentClient):
        return place
    if place is not None:
        return AgentClient(place)
    clients = [AgentClient(Path(path)) for path in ROOT_DIRS]
    answering = next((client for client in clients if client.answers()), None)
    if answering is None:
        others = [client for client in listening_agents() if client.answers()]
        if len(others) > 1:
            places = ", ".join(str(client.root_dir) for client in others)
            raise Failure(f"several agents run here; name one with --root-dir or GLASSLET_ROOT: {places}")
        answering = next(iter(others), None)
    return answering or next((client for client in clients if client.socket.exists()), clients[-1])


def listening_agents(sockets: Path = Path("/proc/net/unix")) -> list[AgentClient]:
    """Agents whose socket listens, by the kernel's table of Unix sockets."""
    try:
        lines = sockets.read_text(errors="surrogateescape").split("\n")[1:]
    except OSError:
        return []
    # Num RefCount Protocol Flags Type St Inode Path; flag 0x10000: accepts connections.
    rows = [fields for line in lines if len(fields := line.split(None, 7)) == 8 and fields[3] == "00010000"]
    paths = {Path(fields[7]) for fields in rows if fields[7].startswith("/") and not fields[7].startswith("/proc/")}
    return [AgentClient(path.parent) for path in sorted(paths) if path.name == SOCKET]


def pod_path(namespace: str, name: str, rest: str = "") -> str:
    """The path of a pod's answers."""
    return f"/pods/{quote(namespace, safe='')}/{quote(name, safe='')}{rest}"


def _connect_unix(stream: socket.socket, path: Path) -> None:
    """Connects. A path longer than a socket address (107 bytes) is opened through its folder's descriptor."""
    if len(os.fsencode(path)) < 108:
        stream.connect(str(path))
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        stream.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _with_query(path: str, query: dict[str, str]) -> str:
    filled = {key: value for key, value in query.items() if value}
    return f"{path}?{urlencode(filled)}" if filled else path


def _refusal(status: int, data: bytes) -> Failure:
    try:
        answer = decode(data, ErrorAnswer)
    except msgspec.MsgspecError:
        return Failure(f"the agent refused ({status}): {data[:200].decode(errors='replace')}")
    text = answer.error
    if answer.field and answer.field != "pod":
        text = f"{answer.field}: {text}"
        if answer.value and answer.value not in text:
            text += f" ({answer.value!r})"
        if answer.allowed:
            text += f"; allowed: {answer.allowed}"
    if answer.nearest:
        text += f"; did you mean {' or '.join(answer.nearest)}?"
    return Failure(text)
