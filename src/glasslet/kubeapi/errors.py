"""Errors of API requests, by what the caller can do.

APIError               verb and path, HTTP code, the Status object's reason and message
├── NotFound           404: it does not exist
├── AlreadyExists      409 AlreadyExists: read it, then update
├── Conflict           409: read it again, apply the change to the newer object
├── Gone               410, or a watch that is too old: list again
├── Invalid            400, 422: this object will never be accepted as it is
├── Forbidden          403: not allowed; a retry helps only after the rules were changed
├── Unauthorized       401: the credentials are not good (any more)
├── Throttled          429: try again after `retry_after` seconds
├── NotDecoded         2xx: the request took effect, but the object in the answer cannot be decoded
└── Unavailable        no connection, time-out, 5xx: try again later
    └── AnswerTooLarge the answer is longer than the agent reads
"""

from __future__ import annotations

from glasslet.kubeapi.decoding import UndecodableObject
from glasslet.kubeapi.obstacles import Obstacle


class APIError(Exception):
    """A request failed. `message` holds the server's words, never credentials or object contents."""

    def __init__(self, request: str, message: str, *, code: int = 0, reason: str = "") -> None:
        super().__init__(f"{request}: {message}")
        self.request = request
        self.message = message
        self.code = code
        self.reason = reason


class NotFound(APIError):
    """The object does not exist."""


class AlreadyExists(APIError):
    """An object of that name exists."""


class Conflict(APIError):
    """The object changed since it was read, or a precondition (UID) does not hold."""


class Gone(APIError):
    """The resource version is too old."""


class Invalid(APIError):
    """The server refuses the object's content."""


class Forbidden(APIError):
    """Not allowed."""


class Unauthorized(APIError):
    """Not authenticated."""


class Throttled(APIError):
    """Too many requests; `retry_after` in seconds."""

    def __init__(self, request: str, message: str, *, retry_after: float, code: int = 429, reason: str = "") -> None:
        super().__init__(request, message, code=code, reason=reason)
        self.retry_after = retry_after


class NotDecoded(APIError):
    """The request took effect, but the object in the answer cannot be decoded."""

    def __init__(self, request: str, item: UndecodableObject) -> None:
        super().__init__(request, f"object {item}", code=200)
        self.item = item


class Unavailable(APIError):
    """The server cannot be reached or cannot answer now. `obstacle`: what was in the way, if no answer came."""

    def __init__(
        self, request: str, message: str, *, code: int = 0, reason: str = "", obstacle: Obstacle | None = None
    ) -> None:
        super().__init__(request, message, code=code, reason=reason)
        self.obstacle = obstacle


class AnswerTooLarge(Unavailable):
    """The answer is longer than the agent reads."""
