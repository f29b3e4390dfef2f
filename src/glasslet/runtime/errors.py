"""Errors of runtime calls, by what the caller can do.

RuntimeCallError           verb, what was attempted, the runtime's own words
├── RuntimeUnavailable     the socket does not answer: wait for the runtime, then try again
├── RuntimeTimeout         the verb's deadline passed: unknown whether it happened; re-read
├── NotInRuntime               the object does not exist: done, for stop and remove
├── NameReserved           a container or sandbox of that name is there (or being made): adopt it or raise the attempt
├── ExecTimeout            the command ran longer than asked
├── ImagePullFailed        carries the CRI reason (RegistryUnavailable, SignatureValidationFailed) or ""
└── RuntimeRejected        everything else: the runtime understood and refused
"""

from __future__ import annotations

from typing import Final


class RuntimeCallError(Exception):
    """A runtime call failed. `verb`: the RPC; `message`: the runtime's words."""

    def __init__(self, verb: str, message: str, *, code: str = "") -> None:
        super().__init__(f"{verb}: {message}")
        self.verb = verb
        self.message = message
        self.code = code


class RuntimeUnavailable(RuntimeCallError):
    """The runtime cannot be reached."""


class RuntimeTimeout(RuntimeCallError):
    """The runtime did not answer within the verb's deadline."""


class NotInRuntime(RuntimeCallError):
    """The runtime does not know the object."""


class NameReserved(RuntimeCallError):
    """The name is taken; `owner` is the id that holds it, "" if the runtime did not say."""

    def __init__(self, verb: str, message: str, *, code: str = "", owner: str = "") -> None:
        super().__init__(verb, message, code=code)
        self.owner = owner


class ExecTimeout(RuntimeCallError):
    """The command inside the container ran out of time."""


class ImagePullFailed(RuntimeCallError):
    """The image could not be pulled; `reason` is the one the runtime gave, or ""."""

    def __init__(self, message: str, *, reason: str = "", code: str = "") -> None:
        super().__init__("PullImage", message, code=code)
        self.reason = reason


class RuntimeRejected(RuntimeCallError):
    """The runtime refused, or its answer cannot be used (`code` INCOMPLETE or UNREADABLE)."""


INCOMPLETE: Final = "INCOMPLETE"
"""Code of an answer without a field that it must have."""
UNREADABLE: Final = "UNREADABLE"
"""Code of an answer that is no message of the protocol."""


def rpc_words(error: RuntimeCallError) -> str:
    """As the Go kubelet prints the error of a call: `rpc error: code = NotFound desc = ...`."""
    return in_rpc_words(error.code, error.message)


def in_rpc_words(code: str, message: str) -> str:
    """As the Go kubelet prints a gRPC status; `code` as in NOT_FOUND, "" for unknown."""
    return f"rpc error: code = {code_in_words(code)} desc = {message}"


def code_in_words(code: str) -> str:
    """A gRPC code under Go's name: NotFound for NOT_FOUND, Unknown for ""."""
    if code in ("OK", "CANCELLED"):
        return "OK" if code == "OK" else "Canceled"
    return "".join(word.capitalize() for word in (code or "UNKNOWN").split("_"))
