"""Errors from HTTP answers: status code and Status object -> APIError."""

from __future__ import annotations

import msgspec

from glasslet.api.codec import decode
from glasslet.api.object import Object
from glasslet.kubeapi.errors import (
    AlreadyExists,
    APIError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Throttled,
    Unauthorized,
    Unavailable,
)

_BY_CODE: dict[int, type[APIError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    406: Invalid,
    409: Conflict,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
}
_SHOWN = 300
_LONGEST_PAUSE = 300.0
"""Seconds: a `Retry-After` beyond this would silence the node."""


class StatusDetails(Object, frozen=True, kw_only=True):
    """`meta/v1.StatusDetails`, as far as it is used."""

    retry_after_seconds: int = 0


class Status(Object, frozen=True, kw_only=True):
    """`meta/v1.Status`."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


def error_for(request: str, code: int, body: bytes, retry_after: str = "") -> APIError:
    """The error for an answer of 300 and above. The body's message is trimmed: a proxy may answer with a whole page."""
    status = _status(body)
    message = (status.message or body.decode("utf-8", "replace").strip() or f"HTTP {code}")[:_SHOWN]
    if code == 429:
        seconds = _seconds(retry_after) or (status.details.retry_after_seconds if status.details else 0)
        pause = min(seconds, _LONGEST_PAUSE) if seconds > 0 else 1.0
        return Throttled(request, message, retry_after=pause, code=code, reason=status.reason)
    kind = _BY_CODE.get(code, Unavailable)
    if code == 409 and status.reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(request, message, code=code, reason=status.reason)


def _status(body: bytes) -> Status:
    try:
        return decode(body, Status)
    except msgspec.DecodeError:
        return Status()


def _seconds(header: str) -> float:
    try:
        return max(0.0, float(header))
    except ValueError:
        return 0.0
