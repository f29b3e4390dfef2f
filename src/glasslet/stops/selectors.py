"""Label selectors as text: `app=web,tier in (a,b),!canary`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from glasslet.api.formats import label_value_problems, qualified_name_problems

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUALITY = re.compile(r"^(?P<key>[^!=\s]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^!=\s]*)$")
_TERMS = re.compile(r",(?![^(]*\))")


class BadSelector(ValueError):
    """The text is no label selector; the message names the part."""


class Term(Struct, frozen=True):
    """One requirement. `wanted`: the values that fit, or with `negated` do not; None: the label has to be there."""

    key: str
    wanted: frozenset[str] | None
    negated: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet it. As in Kubernetes, a label that is absent is not equal to any value."""
        value = labels.get(self.key)
        found = value is not None if self.wanted is None else value in self.wanted
        return found is not self.negated


def parse_selector(text: str) -> tuple[Term, ...]:
    """The requirements, all of which have to hold; () for an empty text. Raises BadSelector."""
    parts = [part.strip() for part in _TERMS.split(text)] if text.strip() else []
    return tuple(_term(part) for part in parts)


def _term(part: str) -> Term:
    if found := _SET.match(part):
        values = [value.strip() for value in found["values"].split(",")]
        return _checked(part, Term(found["key"], frozenset(values), found["operator"] == "notin"))
    if found := _EQUALITY.match(part):
        return _checked(part, Term(found["key"], frozenset((found["value"],)), found["operator"] == "!="))
    return _checked(part, Term(part.removeprefix("!").strip(), None, part.startswith("!")))


def _checked(part: str, term: Term) -> Term:
    problems = [*qualified_name_problems(term.key), *_value_problems(term.wanted or ())]
    if problems:
        raise BadSelector(f"{part!r}: {problems[0]}")
    return term


def _value_problems(values: Iterable[str]) -> Iterable[str]:
    for value in values:
        yield from label_value_problems(value)
