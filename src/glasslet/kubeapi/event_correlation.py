"""Correlation of events: repeated ones are counted, similar ones combined, floods cut. No I/O.

equal again (object, type, reason, message)              ──▶ the same event, count + 1
10 of one object, type and reason within 10 min          ──▶ one "(combined from similar events)", counted up
more than 25 of one object and type, then 1 per 5 min    ──▶ dropped
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from msgspec import Struct

COMBINED = "(combined from similar events): "

_SPAM_BURST = 25
_SPAM_PER_SECOND = 1 / 300
_SIMILAR = 10
_SIMILAR_SECONDS = 600.0
_REMEMBERED = 4096

K = TypeVar("K")
V = TypeVar("V")


class Happening(Struct, frozen=True, kw_only=True):
    """One happening to report. `subject` identifies object and field path."""

    subject: tuple[str, ...]
    type: str
    reason: str
    message: str


class Telling(Struct, frozen=True, kw_only=True):
    """The write that reports a happening: a new event if `count` is 1, otherwise the event `key` is counted up."""

    key: tuple[str, ...]
    message: str
    count: int
    combined: bool = False


class _Remembered(OrderedDict[K, V], Generic[K, V]):
    """The most recently used entries, up to a limit. A forgotten event is written as a new one."""

    def keep(self, key: K, value: V) -> None:
        self[key] = value
        self.move_to_end(key)
        while len(self) > _REMEMBERED:
            self.popitem(last=False)


class _Similar:
    __slots__ = ("messages", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.messages: set[str] = set()


class EventCorrelator:
    """Decides on each happening. Remembers a bounded number of them."""

    def __init__(self) -> None:
        self._tokens: _Remembered[tuple[str, ...], tuple[float, float]] = _Remembered()
        self._similar: _Remembered[tuple[str, ...], _Similar] = _Remembered()
        self._counts: _Remembered[tuple[str, ...], int] = _Remembered()

    def correlate(self, happening: Happening, now: float) -> Telling | None:
        """The write for this happening; None if it is dropped. `now`: monotonic seconds."""
        if not self._allowed((*happening.subject, happening.type), now):
            return None
        group = (*happening.subject, happening.type, happening.reason)
        combined = self._is_combined(group, happening.message, now)
        message = COMBINED + happening.message if combined else happening.message
        key = group if combined else (*group, happening.message)
        count = self._counts.get(key, 0) + 1
        self._counts.keep(key, count)
        return Telling(key=key, message=message, count=count, combined=combined)

    def forget(self, key: tuple[str, ...]) -> None:
        """Forgets the event of this key, which the server deleted: the next one is a new event."""
        self._counts.pop(key, None)

    def _allowed(self, key: tuple[str, ...], now: float) -> bool:
        tokens, filled_at = self._tokens.get(key, (float(_SPAM_BURST), now))
        tokens = min(_SPAM_BURST, tokens + (now - filled_at) * _SPAM_PER_SECOND)
        allowed = tokens >= 1
        self._tokens.keep(key, (tokens - 1 if allowed else tokens, now))
        return allowed

    def _is_combined(self, group: tuple[str, ...], message: str, now: float) -> bool:
        similar = self._similar.get(group)
        if similar is None or now - similar.since > _SIMILAR_SECONDS:
            similar = _Similar(now)
        similar.since = now
        similar.messages.add(message)
        self._similar.keep(group, similar)
        if len(similar.messages) < _SIMILAR:
            return False
        similar.messages = set(list(similar.messages)[:_SIMILAR])
        return True
