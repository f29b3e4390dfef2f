"""The answer to `evict --dry-run`, and the part of `why node` about pressure.

GET /glass/v1/node/eviction?signal=NAME    EvictionAnswer
"""

from __future__ import annotations

from glasslet.answers.wire import WireMessage


class ThresholdAnswer(WireMessage, frozen=True, kw_only=True):
    """One threshold. `amount`: as configured; `line`: the same in bytes, inodes or process ids; `wanted`: what has to
    be available before it is left alone again; `crossed_seconds`: for how long it is crossed, None if it is not;
    `text`: all of it in words."""

    kind: str
    amount: str
    line: int
    wanted: int
    grace_seconds: float = 0.0
    crossed_seconds: float | None = None
    text: str = ""


class SignalAnswer(WireMessage, frozen=True, kw_only=True):
    """One signal. `how`: the arithmetic; `source`: the files or calls that it comes from; `age_seconds`: of the
    figures; `per_minute`: by how much `available` changed lately, None if not known; `trend`: the same in words."""

    signal: str
    unit: str
    available: int
    capacity: int
    how: str
    source: str = ""
    age_seconds: float = 0.0
    per_minute: float | None = None
    trend: str = ""
    thresholds: tuple[ThresholdAnswer, ...] = ()


class CandidateAnswer(WireMessage, frozen=True, kw_only=True):
    """One pod of a ranking. `usage` None: not known; `stays`: why it is never chosen, "" if it may be; `behind`: what
    puts it behind the pod before it that may be chosen; `words`: all of it."""

    pod: str
    usage: int | None
    request: int
    priority: int
    stays: str = ""
    behind: str = ""
    words: str = ""


class OverLimit(WireMessage, frozen=True, kw_only=True):
    """A pod that is above a limit of its own, which ends it whatever the node has left."""

    pod: str
    message: str


class EvictionAnswer(WireMessage, frozen=True, kw_only=True):
    """What eviction would do now; nothing is done. `signal`: the one that `order` is for; `unit`: of usage and requests
    there; `blind`: signals with a threshold and without figures; `problem`: why nothing is known."""

    sentence: str = ""
    signal: str = ""
    unit: str = "bytes"
    signals: tuple[SignalAnswer, ...] = ()
    order: tuple[CandidateAnswer, ...] = ()
    over_limits: tuple[OverLimit, ...] = ()
    conditions: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()
    problem: str = ""
