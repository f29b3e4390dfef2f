"""Refusals on the way to an agent, in words: by kubectl, by the API server, by the node."""

from __future__ import annotations

import re

import msgspec

from glasslet.cli.failure import Failure

_RIGHT = re.compile(r'cannot (\w+) resource "([^"]+)"(?: in API group "[^"]*")?(?: in the namespace "([^"]*)")?')
_KUBELET_RIGHT = re.compile(r"Forbidden \(user=(.*), verb=(\w*), resource=(\w+), subresource\(s\)=\[([^\]]*)\]\)")
_NOT_SERVED = b"404 page not found"


class ApiRefused(Failure):
    """The API server refused; `status` is the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class NodeSilent(Failure):
    """A node's agent does not answer."""

    exit_code = 3


class _Status(msgspec.Struct, frozen=True):
    """A refusal of the API server (meta/v1 Status)."""

    kind: str
    message: str = ""
    reason: str = ""


def api_refusal(status: int, data: bytes) -> ApiRefused:
    """A refusal of the API server for one of its own objects."""
    said = _said(data)
    return ApiRefused(_with_right(said.message or said.reason if said else _text(status, data)), status)


def node_refusal(node: str, status: int, data: bytes) -> Failure | None:
    """The refusal of a request to a node's agent; None if the agent itself refused."""
    said = _said(data)
    if said is None:
        if (missing := _KUBELET_RIGHT.search(data.decode(errors="replace"))) is not None:
            user, verb, resource, parts = missing.groups()
            needed = " or ".join(f"{resource}/{part.strip()}" for part in parts.split(","))
            return ApiRefused(f"{node} refused the API server: its user {user} needs {verb} on {needed}", status)
        if status == 404 and data.strip() == _NOT_SERVED:
            return NodeSilent(f"{node} does not run glasslet: its kubelet has no /glass")
        return None if data.startswith(b"{") else NodeSilent(f"{node} does not answer: {_text(status, data)}")
    if status in (500, 502, 503, 504):
        return NodeSilent(f"{node} does not answer: {_reason(said)}")
    return ApiRefused(_with_right(_reason(said)), status)


def _reason(said: _Status) -> str:
    return (said.message or said.reason).removeprefix("error trying to reach service: ")


def _with_right(message: str) -> str:
    """The message, with the missing right first where it names one."""
    missing = _RIGHT.search(message)
    if missing is None:
        return message
    verb, resource, namespace = missing.groups()
    where = f" in namespace {namespace}" if namespace else ""
    return f"you need {verb} on {resource}{where}: {message}"


def _said(data: bytes) -> _Status | None:
    try:
        said = msgspec.json.decode(data, type=_Status)
    except msgspec.MsgspecError:
        return None
    return said if said.kind == "Status" else None


def _text(status: int, data: bytes) -> str:
    return data[:300].decode(errors="replace").strip() or f"HTTP status {status}"
