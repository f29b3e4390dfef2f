"""Times in sentences: since when something holds, and times of day."""

from __future__ import annotations

from datetime import UTC, datetime

from glasslet.answers.words import duration
from glasslet.glass.trace.timeline import moment


def clock_words(when: datetime | float, now: datetime) -> str:
    """A time of day in UTC, with the date unless it is today: `10:02:05 UTC`. A number is Unix seconds."""
    at = moment(when) if isinstance(when, float) else when.astimezone(UTC)
    today = at.date() == now.astimezone(UTC).date()
    return f"{at:%H:%M:%S} UTC" if today else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def dated(sentence: str, since: datetime | None, now: datetime) -> str:
    """The sentence with the time since when it holds; the duration only if the sentence does not have it."""
    if since is None:
        return sentence
    ago = duration((now - since).total_seconds())
    lasts = "" if ago in sentence else f" ({ago})"
    return f"{sentence.removesuffix('.')}, since {clock_words(since, now)}{lasts}."
