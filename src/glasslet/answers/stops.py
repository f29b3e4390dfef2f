"""The requests and answers about stops: breaks, the pods that they hold, and what is known at a stop.

    GET    /glass/v1/breaks                            BreaksAnswer
    POST   /glass/v1/breaks                            BreakRequest -> BreakRow
    DELETE /glass/v1/breaks[/NUMBER]                   ReleasedAnswer
    POST   /glass/v1/pods/NAMESPACE/NAME/step          StepAnswer, when the pod is held again or moves on by itself
    POST   /glass/v1/pods/NAMESPACE/NAME/continue      ReleasedAnswer
    POST   /glass/v1/continue                          ReleasedAnswer: all pods
    GET    /glass/v1/pods/NAMESPACE/NAME/inspect       InspectAnswer
    GET    /glass/v1/rights                            RightsAnswer

A refused request is answered with ErrorAnswer.
"""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.pods import Hold, TimelineRow
from glasslet.answers.wire import WireMessage


class BreakRequest(WireMessage, frozen=True, kw_only=True):
    """Where and when pods are to be held. `at`: a station, `plan`, `status` or `cri:CALL`. `pod`: NAMESPACE/NAME with
    `*` and `?`, "" for all; `selector`: a label selector. `when`: a CEL expression over the fields of `inspect`.
    `hold_seconds`: the most that one hold lasts; `count`: holds until the break removes itself, 0 for no limit."""

    at: str
    after: bool = False
    pod: str = ""
    namespace: str = ""
    selector: str = ""
    container: str = ""
    when: str = ""
    hold_seconds: float = 600.0
    count: int = 0


class BreakRow(WireMessage, frozen=True, kw_only=True):
    """One break. `matching`: pods on this node that it fits now; `problem`: why its condition could not be evaluated
    the last time, "" if it could."""

    number: int
    at: str
    after: bool = False
    pod: str = ""
    namespace: str = ""
    selector: str = ""
    container: str = ""
    when: str = ""
    hold_seconds: float = 600.0
    count: int = 0
    set_at: datetime
    set_by: str = ""
    hits: int = 0
    holding: tuple[str, ...] = ()
    matching: int = 0
    problem: str = ""


class BreaksAnswer(WireMessage, frozen=True, kw_only=True):
    """All breaks, by number."""

    breaks: tuple[BreakRow, ...] = ()


class ReleasedAnswer(WireMessage, frozen=True, kw_only=True):
    """The pods (NAMESPACE/NAME) that go on, and the breaks that were removed."""

    released: tuple[str, ...] = ()
    removed: tuple[int, ...] = ()


class StepAnswer(WireMessage, frozen=True, kw_only=True):
    """Where the pod is after a step. `hold` None: it was let go and is not held again. `passed`: what happened on the
    way, oldest first."""

    namespace: str
    name: str
    hold: Hold | None = None
    passed: tuple[TimelineRow, ...] = ()


class InspectAnswer(WireMessage, frozen=True, kw_only=True):
    """All that the agent knows of a pod now. `tree`: maps, lists and scalars; secrets are replaced by their length."""

    namespace: str
    name: str
    hold: Hold | None = None
    tree: dict[str, object] = {}


class RightsAnswer(WireMessage, frozen=True, kw_only=True):
    """The verbs on `nodes/glass` that the client holds."""

    verbs: tuple[str, ...] = ()
