"""gRPC status -> the error tree of `runtime.errors`, by what the caller can do about it."""

from __future__ import annotations

import re

import grpc

from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import (
    ExecTimeout,
    ImagePullFailed,
    NameReserved,
    NotInRuntime,
    RuntimeCallError,
    RuntimeRejected,
    RuntimeTimeout,
    RuntimeUnavailable,
)

PULL_REASONS = ("RegistryUnavailable", "SignatureValidationFailed")
"""Reasons that the CRI lets a runtime put before the text of a failed pull, for want of status details."""

# Linear time, as the message may hold any text: no part of it can match in two ways.
_RESERVED = re.compile(
    r'(?:(?<=name )|(?<=" ))is (?:reserved|already in use)(?: for| by)? ?"?(?P<owner>[0-9a-f]{12,64})?"?'
)
_NAME = 'name "'
_NAMING = frozenset({Verb.RUN_POD_SANDBOX, Verb.CREATE_CONTAINER})


def translate(verb: Verb, code: grpc.StatusCode, message: str) -> RuntimeCallError:
    """The error for this status of this verb. `message`: the runtime's words, unchanged."""
    name = code.name
    if verb in _NAMING and (reserved := _name_reserved(verb, code, message)) is not None:
        return reserved
    if verb is Verb.PULL_IMAGE and (failed := _pull_failed(code, message)) is not None:
        return failed
    match code:
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
            return RuntimeUnavailable(verb, message, code=name)
        case grpc.StatusCode.DEADLINE_EXCEEDED if verb is Verb.EXEC_SYNC:
            return ExecTimeout(verb, message, code=name)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return RuntimeTimeout(verb, message, code=name)
        case grpc.StatusCode.NOT_FOUND:
            return NotInRuntime(verb, message, code=name)
        case _:
            return RuntimeRejected(verb, message, code=name)


def _name_reserved(verb: Verb, code: grpc.StatusCode, message: str) -> NameReserved | None:
    """No runtime has a status code of its own for a taken name (containerd answers UNKNOWN), so here alone the text
    decides; a runtime that words it otherwise gives a plain refusal, which callers retry with the same name."""
    found = _RESERVED.search(message)
    if found is not None and message.endswith('" ', 0, found.start()) and _NAME not in message[: found.start()]:
        # Something else than a name is quoted before it.
        found = None
    if found is None and code is not grpc.StatusCode.ALREADY_EXISTS:
        return None
    owner = found.group("owner") if found is not None else None
    return NameReserved(verb, message, code=code.name, owner=owner or "")


def _pull_failed(code: grpc.StatusCode, message: str) -> ImagePullFailed | None:
    """Every answer about a pull but the runtime's own absence is about the image."""
    reason = next((r for r in PULL_REASONS if message.startswith(r)), "")
    if not reason and code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return None
    return ImagePullFailed(message, reason=reason, code=code.name)
