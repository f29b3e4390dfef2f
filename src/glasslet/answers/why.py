"""The answer to `why`: a verdict with its evidence."""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.wire import WireMessage


class Evidence(WireMessage, frozen=True, kw_only=True):
    """One fact that supports the verdict."""

    label: str
    text: str


class VerdictAnswer(WireMessage, frozen=True, kw_only=True):
    """Why a pod or the node is as it is. `brief`: the sentence in a few words, "" when nothing is outstanding; `rest`:
    what is already done or right; `next_step`: what the operator can do, "" when there is nothing to do."""

    namespace: str
    name: str
    rule: Rule
    state: VerdictState
    sentence: str
    brief: str = ""
    evidence: tuple[Evidence, ...] = ()
    rest: str = ""
    next_step: str = ""
    since: datetime | None = None
