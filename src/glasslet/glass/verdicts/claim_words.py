"""Verdicts on resource claims: which call of which DRA driver lasts or failed, and what its error means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.words import times
from glasslet.glass.trace.timeline import moment
from glasslet.glass.verdicts.causes import Cause
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.stations import Station, WaitKind

_PREPARE: Final = "prepare dynamic resources: "
"""Stands in every error of claims, also in that of giving back."""
_ERROR: Final = re.compile(r"(?P<method>Node\w+): rpc error: code = (?P<code>\w+) desc = (?P<said>.*)$", re.DOTALL)
_DRIVER: Final = re.compile(r"DRA driver (?P<driver>\S+?)(?::| is not registered)")
_UNREGISTERED: Final = re.compile(r"DRA driver (?P<driver>\S+) is not registered")
_LOG: Final = "see the log of the driver's pod on this node"
_POD: Final = "check that the driver's pod on this node runs"
_CODES: Final[Mapping[str, tuple[str, str]]] = {
    "DeadlineExceeded": ("did not answer within 45 s", _LOG),
    "FailedPrecondition": ("cannot do it in the claim's present state", _LOG),
    "Internal": ("has an internal error", _LOG),
    "InvalidArgument": ("refuses the request as invalid", "check the claim's configuration, and the driver's version"),
    "NotFound": ("does not know the claim or a device of it", "check that the device still exists on this node"),
    "PermissionDenied": ("is not allowed to", "check the driver's rights"),
    "ResourceExhausted": ("has no device left for it", _LOG),
    "Unavailable": ("does not answer at its socket, or is not ready", _POD),
    "Unimplemented": ("does not have this call", "check the driver's version"),
}
_OWN: Final = (
    ("is not allowed to use ResourceClaim", "reserve the claim for the pod: the scheduler does it for pods it binds"),
    ("not allocated", "let the scheduler choose devices: it does so for pods it binds"),
    ("fetch ResourceClaim", "create the ResourceClaim, or check the API server"),
    ("still exists", "wait until the pod of the old claim has given it back; check its driver"),
)


def claim_not_prepared(it: Situation) -> VerdictAnswer | None:
    """The devices that the pod claims are not prepared: the driver works, fails, or is not there."""
    call = it.wait(WaitKind.DRA_CALL)
    failures = [span for span in it.failures(Station.SANDBOX) if _PREPARE in span.detail]
    passed = it.passed(Station.SANDBOX)
    failed = bool(failures) and (passed is None or passed.end < failures[-1].end)
    if call is None and not failed:
        return None
    last = failures[-1].detail if failed else ""
    found = claim_cause(last) if failed else None
    lasts = f"{call.on} runs for {it.ago(call.since)}" if call is not None else ""
    words = "; ".join(filter(None, (found.words if found is not None else "", lasts)))
    began = it.failing_since(Station.SANDBOX) if failed else None
    return it.verdict(
        Rule.CLAIM_NOT_PREPARED,
        VerdictState.FAILING if failed else VerdictState.WAITING,
        f"{it} waits for the devices of its resource claims: {words}.",
        brief=f"resource claims: {found.words if found is not None else lasts}",
        since=began or moment(call.since if call is not None else failures[0].start),
        evidence=[
            ("call", call.on if call is not None else ""),
            ("last error", last),
            ("tried", times(len(failures)) if failed else ""),
        ],
        next_step=f"{found.next_step if found is not None else _LOG}; the agent tries again",
    )


def claims_not_given_back(it: Situation) -> str:
    """What a stopped pod waits for because of its claims; "" if it is not that."""
    if (call := it.wait(WaitKind.DRA_CALL)) is not None:
        return f"{call.on} runs for {it.ago(call.since)}"
    wait = it.wait(WaitKind.BACK_OFF)
    return claim_cause(wait.on).words if wait is not None and f"un{_PREPARE}" in wait.on else ""


def claim_cause(said: str) -> Cause:
    """The cause behind an error of claims."""
    if (missing := _UNREGISTERED.search(said)) is not None:
        return Cause(f"DRA driver {missing['driver']} is not registered on this node", _POD)
    named = _DRIVER.search(said)
    who = f"DRA driver {named['driver']}" if named is not None else "its DRA driver"
    if (error := _ERROR.search(said)) is not None:
        means, step = _CODES.get(error["code"], ("failed", _LOG))
        words = " ".join(error["said"].split())
        return Cause(f"{who} ({error['method']}) {means} [{error['code']}]{': ' + words if words else ''}", step)
    rest = said.rpartition(_PREPARE)[2]
    step = next((step for words, step in _OWN if words in rest), _LOG)
    return Cause(f"{who}: {rest}" if named is not None else rest, step)
