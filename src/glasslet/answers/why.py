"""`why`: a verdict with its evidence."""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.wire import Answer


class Evidence(Answer, frozen=True, kw_only=True):
    """One thing that speaks for the verdict."""

    label: str
    text: str


class VerdictAnswer(Answer, frozen=True, kw_only=True):
    """Why a pod is as it is. `rule`: the rule that spoke; `state`: fine, starting, waiting, failing, stopping or ended.
    `brief`: the sentence in a few words, "" when nothing is outstanding; `rest`: what is already done or right;
    `next_step`: what a person can do, "" when there is nothing to do."""

    namespace: str
    name: str
    rule: str
    state: str
    sentence: str
    brief: str = ""
    evidence: tuple[Evidence, ...] = ()
    rest: str = ""
    next_step: str = ""
    since: datetime | None = None
