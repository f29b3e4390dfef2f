"""The query of `/containerLogs`, decoded and validated as core/v1 PodLogOptions are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from multidict import MultiMapping

from glasslet.api.pod_log_options import PodLogOptions

_INTEGER = re.compile(r"[+-]?[0-9]+")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
STREAMS = ("All", "Stdout", "Stderr")


class UndecodableOption(Exception):
    """A value is not of its field's kind."""


class InvalidOption(Exception):
    """Values are out of range or do not go together."""


def log_options(query: MultiMapping[str]) -> PodLogOptions:
    """The options; of repeated fields the first counts. Raises UndecodableOption or InvalidOption."""
    first = {key: query.getone(key) for key in query}
    tail = first.pop("tail", "")
    if tail:
        first["tailLines"] = tail
    if tail == "all":
        del first["tailLines"]
    options = PodLogOptions(
        follow=_boolean(first, "follow"),
        previous=_boolean(first, "previous"),
        timestamps=_boolean(first, "timestamps"),
        since_seconds=_integer(first, "sinceSeconds"),
        since_time=_time(first, "sinceTime"),
        tail_lines=_integer(first, "tailLines"),
        limit_bytes=_integer(first, "limitBytes"),
        stream=first.get("stream", "All"),
    )
    _validate(options)
    return options


def _validate(options: PodLogOptions) -> None:
    if options.tail_lines is not None and options.tail_lines < 0:
        raise InvalidOption("tailLines")
    if options.limit_bytes is not None and options.limit_bytes < 1:
        raise InvalidOption("limitBytes")
    if options.since_seconds is not None and (options.since_seconds < 1 or options.since_time is not None):
        raise InvalidOption("sinceSeconds")
    if options.stream not in STREAMS or (options.stream != "All" and options.tail_lines is not None):
        raise InvalidOption("stream")


def _boolean(query: Mapping[str, str], name: str) -> bool:
    """Present is true, unless it says false or 0."""
    return name in query and query[name].lower() not in ("false", "0")


def _integer(query: Mapping[str, str], name: str) -> int | None:
    if name not in query:
        return None
    text = query[name]
    if not _INTEGER.fullmatch(text) or len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise UndecodableOption(name)
    return int(text)


def _time(query: Mapping[str, str], name: str) -> datetime | None:
    text = query.get(name, "")
    if text in ("", "null"):
        return None
    if not _RFC3339.fullmatch(text):
        raise UndecodableOption(name)
    try:
        # In UTC, so that a time beyond the calendar's ends is refused here.
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UndecodableOption(name) from None
