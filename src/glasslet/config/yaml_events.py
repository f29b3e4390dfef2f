"""Plain data from libyaml's event stream, without recursion: nothing in a file can exhaust stack, memory or time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import yaml
from msgspec import Struct, field

from glasslet.config.document import MAX_ALIASED, MAX_DEPTH, MAX_EVENTS, Document, DocumentError, Spot, format_path
from glasslet.config.scalars import Scalar, resolve_plain, resolve_tagged

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MISSING: Any = object()
_CORE_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!")


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return 0 if mark is None else int(mark.line) + 1


class _Measure(Struct):
    """How large a finished node is: all nodes in it, aliases followed, and its levels."""

    nodes: int = 1
    levels: int = 0


class _Open(Struct):
    """A collection whose end has not been read yet."""

    value: Any
    spot: Spot
    anchor: str | None
    measure: _Measure = field(default_factory=_Measure)
    key: Any = _MISSING
    """The key whose value comes next; None stands for the merge key."""
    key_line: int = 0
    merged: list[tuple[Any, Spot]] = field(default_factory=list)


class _Builder(Struct):
    """State of one document."""

    origin: str
    tolerate_duplicates: bool
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[Any, Spot, _Measure]] = field(default_factory=dict)
    aliased: int = 0
    duplicates: list[tuple[str, int]] = field(default_factory=list)
    root: tuple[Any, Spot] | None = None

    def fail(self, line: int, message: str) -> NoReturn:
        raise DocumentError(self.origin, line, message)

    def steps(self) -> list[str | int]:
        steps: list[str | int] = []
        for frame in self.stack:
            if isinstance(frame.value, list):
                steps.append(len(frame.value))
            elif frame.key is not _MISSING and frame.key is not None:
                steps.append(frame.key)
        return steps

    def path(self) -> str:
        return format_path(self.steps())

    def open(self, event: yaml.CollectionStartEvent, value: Any) -> None:
        line = _line(event)
        if len(self.stack) >= MAX_DEPTH:
            self.fail(line, f"is nested deeper than {MAX_DEPTH} levels")
        if event.tag is not None and event.tag not in _CORE_COLLECTIONS:
            self.fail(line, f"tag {event.tag} is not supported")
        if self.stack and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is _MISSING:
            self.fail(line, "a key must be a plain value, not a list or map")
        self.stack.append(_Open(value, Spot(line), event.anchor))

    def close(self) -> None:
        frame = self.stack.pop()
        for source, spot in frame.merged:
            for key, value in source.items():
                if key not in frame.value:
                    frame.value[key] = value
                    frame.spot.inside[key] = spot.inside.get(key, spot)
        if frame.anchor is not None:
            self.anchors[frame.anchor] = (frame.value, frame.spot, frame.measure)
        self.place(frame.value, frame.spot, frame.measure)

    def scalar(self, event: yaml.ScalarEvent) -> None:
        line = _line(event)
        try:
            value = self._resolve(event)
        except ValueError as error:
            self.fail(line, f"{self.path() or 'value'}: {error}")
        spot, measure = Spot(line), _Measure()
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, spot, measure)
        if self.stack and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is _MISSING:
            self._take_key(value, line, merge=value == "<<" and not event.style)
        else:
            self.place(value, spot, measure)

    @staticmethod
    def _resolve(event: yaml.ScalarEvent) -> Scalar:
        if event.tag is not None:
            return resolve_tagged(event.value, event.tag)
        return resolve_plain(event.value) if event.implicit[0] else str(event.value)

    def alias(self, event: yaml.AliasEvent) -> None:
        line = _line(event)
        if any(frame.anchor == event.anchor for frame in self.stack):
            self.fail(line, f"alias *{event.anchor} stands inside the value it refers to")
        if event.anchor not in self.anchors:
            self.fail(line, f"alias *{event.anchor} refers to nothing")
        value, spot, measure = self.anchors[event.anchor]
        self.aliased += measure.nodes
        if self.aliased > MAX_ALIASED:
            self.fail(line, f"the aliases of this file stand for more than {MAX_ALIASED} values")
        if len(self.stack) + measure.levels > MAX_DEPTH:
            self.fail(line, f"is nested deeper than {MAX_DEPTH} levels")
        if self.stack and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is _MISSING:
            if isinstance(value, dict | list):
                self.fail(line, "a key must be a plain value, not a list or map")
            self._take_key(value, line, merge=False)
        else:
            self.place(value, Spot(line, spot.inside), measure)

    def _take_key(self, value: Scalar, line: int, *, merge: bool) -> None:
        frame = self.stack[-1]
        if value is None or (isinstance(value, float) and not merge):
            self.fail(line, f"{self.path() or 'document'}: a key must be a name")
        # As upstream, keys that read as numbers or booleans become their text.
        key = ("true" if value else "false") if isinstance(value, bool) else str(value)
        if merge:
            key = "<<"
        elif key in frame.value:
            place = format_path([*self.steps(), key])
            if not self.tolerate_duplicates:
                first = frame.spot.inside[key].line
                self.fail(line, f"key {place!r} is given twice (first on line {first})")
            self.duplicates.append((place, line))
        frame.key, frame.key_line = (key if not merge else None), line

    def place(self, value: Any, spot: Spot, measure: _Measure) -> None:
        """Puts a finished value where it belongs."""
        if not self.stack:
            self.root = (value, spot)
            return
        frame = self.stack[-1]
        frame.measure.nodes += measure.nodes
        frame.measure.levels = max(frame.measure.levels, measure.levels + 1)
        if isinstance(frame.value, list):
            frame.spot.inside[len(frame.value)] = spot
            frame.value.append(value)
            return
        key, frame.key = frame.key, _MISSING
        if key is None:
            self._merge(frame, value, spot)
            return
        frame.value[key] = value
        # A reader looks for the key, not for what stands below it.
        spot.line = frame.key_line
        frame.spot.inside[key] = spot

    def _merge(self, frame: _Open, value: Any, spot: Spot) -> None:
        sources = value if isinstance(value, list) else [value]
        for index, source in enumerate(sources):
            if not isinstance(source, dict):
                self.fail(frame.key_line, "a merge key (<<) needs a map or a list of maps")
            frame.merged.append((source, spot.inside.get(index, spot) if sources is value else spot))


def _known(spot: Spot) -> Callable[[], Spot]:
    return lambda: spot


def build(text: str, origin: str, tolerate_duplicates: bool) -> list[Document]:
    """All non-empty documents of a YAML text. Raises DocumentError."""
    documents: list[Document] = []
    builder = _Builder(origin, tolerate_duplicates)
    try:
        for count, event in enumerate(yaml.parse(text, Loader=_Loader)):
            if count > MAX_EVENTS:
                raise DocumentError(origin, _line(event), "holds too many values, want a smaller file")
            if isinstance(event, yaml.ScalarEvent):
                builder.scalar(event)
            elif isinstance(event, yaml.MappingStartEvent):
                builder.open(event, {})
            elif isinstance(event, yaml.SequenceStartEvent):
                builder.open(event, [])
            elif isinstance(event, yaml.CollectionEndEvent):
                builder.close()
            elif isinstance(event, yaml.AliasEvent):
                builder.alias(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                builder = _Builder(origin, tolerate_duplicates)
            elif isinstance(event, yaml.DocumentEndEvent) and builder.root and builder.root[0] is not None:
                value, spot = builder.root
                documents.append(Document(value, origin, _known(spot), tuple(builder.duplicates)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DocumentError(origin, mark.line + 1 if mark else 0, f"invalid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", "cannot be read")
        raise DocumentError(origin, 0, f"invalid YAML: {reason}") from None
    return documents
