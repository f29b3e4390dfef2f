"""An editor that debugs: a client of the Debug Adapter Protocol, as far as tests need it."""

from __future__ import annotations

import itertools
import json
import socket
import time
from typing import Any

Plain = dict[str, Any]


class DebugClient:
    """Attached to debugpy on a port of loopback."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._stream = self._socket.makefile("rb")
        self._numbers = itertools.count(1)
        self._events: list[Plain] = []
        self._answers: dict[int, Plain] = {}

    def attach(self, file: str, line: int) -> None:
        """Attaches with one breakpoint."""
        self.ask("initialize", adapterID="test", pathFormat="path", linesStartAt1=True, columnsStartAt1=True)
        attached = self._send("attach", justMyCode=False, connect={"host": "127.0.0.1"})
        self.event("initialized")
        self.ask("setBreakpoints", source={"path": file}, breakpoints=[{"line": line}])
        self.ask("configurationDone")
        self._answer(attached)

    def ask(self, command: str, **arguments: Any) -> Plain:
        """The body of the answer to a request."""
        return self._answer(self._send(command, **arguments))

    def event(self, name: str, seconds: float = 60.0) -> Plain:
        """The body of the next event of this name."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for event in self._events:
                if event["event"] == name:
                    self._events.remove(event)
                    return dict(event.get("body") or {})
            self._read()
        raise AssertionError(f"no event {name}: {self._events}")

    def close(self) -> None:
        """Closes the connection, as an editor that dies."""
        self._socket.close()

    def _send(self, command: str, **arguments: Any) -> int:
        number = next(self._numbers)
        message = {"seq": number, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(message).encode()
        self._socket.sendall(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return number

    def _answer(self, number: int) -> Plain:
        while number not in self._answers:
            self._read()
        answer = self._answers.pop(number)
        assert answer["success"], answer
        return dict(answer.get("body") or {})

    def _read(self) -> None:
        length = 0
        while (line := self._stream.readline().strip()) != b"":
            length = int(line.rpartition(b":")[2])
        message = json.loads(self._stream.read(length))
        if message["type"] == "event":
            self._events.append(message)
        elif message["type"] == "response":
            self._answers[message["request_seq"]] = message
