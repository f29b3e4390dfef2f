"""Breaks: which pods are to be held where. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from glasslet.answers.stops import BreakRequest
from glasslet.answers.wire import ErrorAnswer
from glasslet.answers.words import nearest
from glasslet.api.pod_ref import PodRef
from glasslet.record.way import PLAN
from glasslet.stops.places import PLACES
from glasslet.stops.selectors import BadSelector, Term, parse_selector

LONGEST_HOLD = 86400.0
"""Seconds that one hold may last."""
LONGEST_CONDITION = 1024
"""Characters of a condition."""
_LONGEST_TEXT = 1024
_MOST_HOLDS = 1_000_000


class BadBreak(Exception):
    """A break that cannot be set; `answer` names the field, its value and what is allowed."""

    def __init__(self, answer: ErrorAnswer) -> None:
        super().__init__(answer.error)
        self.answer = answer


class Break(Struct, frozen=True, kw_only=True):
    """One break that can be set. `pod`: pattern of NAMESPACE/NAME, or of a name in any namespace."""

    wanted: BreakRequest
    selector: tuple[Term, ...] = ()

    def is_at(self, place: str, *, after: bool, container: str) -> bool:
        """Whether it holds pods at this place of their way."""
        wanted = self.wanted
        return wanted.at == place and wanted.after == after and wanted.container in ("", container)

    def fits(self, pod: PodRef, labels: Mapping[str, str] | None) -> bool:
        """Whether it is about this pod. `labels` None: unknown."""
        wanted = self.wanted
        if wanted.namespace not in ("", pod.namespace):
            return False
        if wanted.pod:
            name = str(pod) if "/" in wanted.pod else pod.name
            if not fnmatchcase(name, wanted.pod):
                return False
        if not self.selector:
            return True
        return labels is not None and all(term.holds(labels) for term in self.selector)


def parse_break(wanted: BreakRequest) -> Break:
    """The break that is asked for, but for its condition. Raises BadBreak."""
    if wanted.at not in PLACES:
        raise _bad("at", wanted.at, "no place where a pod can be held", ", ".join(PLACES))
    if wanted.after and wanted.at == PLAN:
        raise _bad("after", "true", "a plan has no work of its own to be held after", "false; or at: planned")
    if not 0 < wanted.hold_seconds <= LONGEST_HOLD:
        allowed = f"more than 0, at most {LONGEST_HOLD:.0f} seconds"
        raise _bad("holdSeconds", f"{wanted.hold_seconds:g}", "no time that a hold can last", allowed)
    if not 0 <= wanted.count <= _MOST_HOLDS:
        raise _bad("count", str(wanted.count), "no number of holds", f"0 (no limit) to {_MOST_HOLDS}")
    for field in ("pod", "namespace", "container", "selector"):
        text: str = getattr(wanted, field)
        if len(text) > _LONGEST_TEXT or not text.isprintable():
            raise _bad(field, text[:100], "too long, or not printable", f"at most {_LONGEST_TEXT} characters")
    if "[" in wanted.pod or wanted.pod.count("/") > 1:
        raise _bad("pod", wanted.pod, "no pattern of a pod", "NAMESPACE/NAME or NAME, with * and ?")
    if len(wanted.when) > LONGEST_CONDITION:
        raise _bad("when", wanted.when[:100], "the condition is too long", f"at most {LONGEST_CONDITION} characters")
    try:
        selector = parse_selector(wanted.selector)
    except BadSelector as error:
        allowed = "KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A), KEY, !KEY, with commas between them"
        raise _bad("selector", wanted.selector, f"no label selector: {error}", allowed) from error
    return Break(wanted=wanted, selector=selector)


def _bad(field: str, value: str, error: str, allowed: str) -> BadBreak:
    near = nearest(value, PLACES) if field == "at" else ()
    return BadBreak(ErrorAnswer(error=error, field=field, value=value, allowed=allowed, nearest=near))
