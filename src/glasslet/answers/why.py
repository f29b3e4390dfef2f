"""The answers to `why`: a verdict with its evidence, and all troubles of a node.

GET /glass/v1/pods/NAMESPACE/NAME/why    VerdictAnswer
GET /glass/v1/node/why                   VerdictAnswer
GET /glass/v1/why                        TroublesAnswer
"""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.states import Rule, VerdictState, VerdictSubject
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


class Trouble(WireMessage, frozen=True, kw_only=True):
    """One thing that is not as it should be. `wrong`: it does not pass by itself; False for a pod that is starting,
    stopping, or held on purpose. A verdict on a manifest has the file as its name."""

    subject: VerdictSubject
    verdict: VerdictAnswer
    wrong: bool = False


class TroublesAnswer(WireMessage, frozen=True, kw_only=True):
    """Everything on a node that is not as it should be, the worst first. `sentence`: how it stands as a whole; `wrong`:
    whether any trouble is; `pods`: how many were looked at; `left_out`: troubles beyond those listed."""

    sentence: str
    node: VerdictAnswer
    wrong: bool = False
    pods: int = 0
    troubles: tuple[Trouble, ...] = ()
    left_out: int = 0
