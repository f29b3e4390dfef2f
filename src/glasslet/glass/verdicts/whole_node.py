"""Why the node is Ready or not: rules over what the agent knows of itself, asked in order, causes before consequences.

judge_node(NodeSituation(...)) -> VerdictAnswer
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from glasslet.answers.why import Evidence, VerdictAnswer
from glasslet.answers.words import duration


class Answer(StrEnum):
    """What the API server's last answer was, by what it means."""

    GOOD = "good"
    REFUSED = "refused"
    """401 or 403."""
    NONE = "none"
    """No connection, no answer in time, or 5xx."""
    OTHER = "other"


class LastTry(Struct, frozen=True, kw_only=True):
    """How the last request of one kind ended; `said`: the error's words."""

    answer: Answer = Answer.GOOD
    said: str = ""


GOOD = LastTry()


class NodeSituation(Struct, frozen=True, kw_only=True):
    """The node at time `now`. `told`, `told_reason`, `told_message`: the Ready condition that the API server has (True,
    False, Unknown, "" if none), since `told_since`; `not_ready`: what the agent would tell now, "" if Ready;
    `waiting_sources`: sources of pods that have not reported yet."""

    name: str
    now: datetime
    standalone: bool = False
    registered: bool = True
    registration: LastTry = GOOD
    lease: LastTry = GOOD
    lease_renewed_at: datetime | None = None
    lease_seconds: int = 0
    report: LastTry = GOOD
    certificate_expired_at: datetime | None = None
    runtime_errors: tuple[str, ...] = ()
    network_error: str = ""
    not_ready: str = ""
    told: str = ""
    told_reason: str = ""
    told_message: str = ""
    told_since: datetime | None = None
    waiting_sources: tuple[str, ...] = ()

    def heard_of(self) -> str:
        """How long ago the API server heard of the node, in words."""
        if self.lease_renewed_at is None:
            return "not by this agent"
        return f"{duration((self.now - self.lease_renewed_at).total_seconds())} ago"

    def verdict(
        self, rule: str, state: str, sentence: str, *, evidence: Sequence[tuple[str, str]] = (), next_step: str = ""
    ) -> VerdictAnswer:
        """A verdict on this node; evidence without text is left out."""
        told = f"{self.told} ({self.told_reason}): {self.told_message}" if self.told else ""
        common = () if self.standalone else (("API server has", told), ("last heartbeat", self.heard_of()))
        return VerdictAnswer(
            namespace="",
            name=self.name,
            rule=rule,
            state=state,
            sentence=sentence,
            evidence=tuple(Evidence(label=label, text=text) for label, text in (*evidence, *common) if text),
            next_step=next_step,
            since=self.told_since,
        )


def judge_node(it: NodeSituation) -> VerdictAnswer:
    """Why the node is as it is."""
    for rule in RULES:
        if verdict := rule(it):
            return verdict
    return _fine(it)


def certificate_expired(it: NodeSituation) -> VerdictAnswer | None:
    """Nobody believes a node whose certificate is over."""
    if it.certificate_expired_at is None:
        return None
    return it.verdict(
        "certificate_expired",
        "failing",
        f"{it.name} is NotReady: its client certificate expired {it.certificate_expired_at:%FT%TZ}, and the API server "
        "takes nothing from it.",
        evidence=[("registration", it.registration.said), ("lease", it.lease.said)],
        next_step="get new credentials for this node; `glasslet describe`s findings and the log tell the steps",
    )


def registration_refused(it: NodeSituation) -> VerdictAnswer | None:
    """The API server answers, and does not want the node."""
    if it.registered or it.registration.answer not in (Answer.REFUSED, Answer.OTHER):
        return None
    return it.verdict(
        "registration_refused",
        "failing",
        f"{it.name} is no node of the cluster: the API server refuses its registration.",
        evidence=[("it said", it.registration.said)],
        next_step="look at the user of the kubeconfig (system:node:<name>, group system:nodes) and at the node's name",
    )


def api_unreachable(it: NodeSituation) -> VerdictAnswer | None:
    """Nobody hears of the node."""
    tries = (it.registration if not it.registered else GOOD, it.lease, it.report)
    failed = next((one for one in tries if one.answer is Answer.NONE), None)
    if failed is None:
        return None
    late = it.lease_renewed_at is None or (it.now - it.lease_renewed_at).total_seconds() > it.lease_seconds
    seen = "is NotReady for the cluster" if late else "may soon be NotReady for the cluster"
    return it.verdict(
        "api_unreachable",
        "failing",
        f"{it.name} {seen}: the API server cannot be reached.",
        evidence=[("last try", failed.said), ("runtime", "; ".join(it.runtime_errors))],
        next_step="look at the API server and the way to it; pods go on meanwhile, and all is told when it is back",
    )


def not_registered(it: NodeSituation) -> VerdictAnswer | None:
    """There is no Node object yet."""
    if it.registered or it.standalone:
        return None
    return it.verdict(
        "not_registered",
        "starting",
        f"{it.name} is not registered at the API server yet.",
        evidence=[("it said", it.registration.said)],
        next_step="nothing, it is tried again and again; with registerNode: false somebody else has to make the Node",
    )


def lease_failing(it: NodeSituation) -> VerdictAnswer | None:
    """Without a lease the controllers give the node up, however well it is."""
    if it.lease.answer is Answer.GOOD:
        return None
    return it.verdict(
        "lease_failing",
        "failing",
        f"{it.name} cannot renew its lease: without it the cluster takes the node for dead after {it.lease_seconds} s.",
        evidence=[("it said", it.lease.said)],
        next_step="look at the node's rights on leases in the namespace kube-node-lease",
    )


def runtime_down(it: NodeSituation) -> VerdictAnswer | None:
    """No container can be started or stopped."""
    if not it.runtime_errors:
        return None
    return it.verdict(
        "runtime_down",
        "failing",
        f"{it.name} is NotReady: the container runtime is not well.",
        evidence=[("runtime", "; ".join(it.runtime_errors)), ("network", it.network_error)],
        next_step="look at the runtime's service and log (systemctl status containerd)",
    )


def network_not_ready(it: NodeSituation) -> VerdictAnswer | None:
    """No pod can get an address."""
    if not it.network_error:
        return None
    return it.verdict(
        "network_not_ready",
        "failing",
        f"{it.name} is NotReady: the runtime has no network for pods.",
        evidence=[("network", it.network_error)],
        next_step="install a CNI configuration (/etc/cni/net.d) and its plugins; it is noticed within seconds",
    )


def not_ready(it: NodeSituation) -> VerdictAnswer | None:
    """Anything else that the agent itself says."""
    if not it.not_ready:
        return None
    return it.verdict(
        "not_ready", "failing", f"{it.name} is NotReady: {it.not_ready}", evidence=[("agent", it.not_ready)]
    )


def not_told(it: NodeSituation) -> VerdictAnswer | None:
    """The node is well, and the API server shows something else."""
    if it.standalone or it.told == "True":
        return None
    if it.report.answer is not Answer.GOOD:
        why, evidence = "the API server does not take its status", [("it said", it.report.said)]
    elif it.told == "Unknown":
        why, evidence = "a controller gave it up for want of heartbeats, and it has not yet told otherwise", []
    else:
        why, evidence = "the API server has not been told yet", []
    return it.verdict(
        "not_told",
        "waiting",
        f"{it.name} is well, but NotReady for the cluster: {why}.",
        evidence=evidence,
        next_step="wait for the next report (seconds); then look at the agent's log",
    )


RULES: tuple[Callable[[NodeSituation], VerdictAnswer | None], ...] = (
    certificate_expired,
    registration_refused,
    api_unreachable,
    not_registered,
    lease_failing,
    runtime_down,
    network_not_ready,
    not_ready,
    not_told,
)


def _fine(it: NodeSituation) -> VerdictAnswer:
    waiting = f"; pods of {', '.join(it.waiting_sources)} have not been listed yet" if it.waiting_sources else ""
    works = "the runtime and its network work"
    if it.standalone:
        return it.verdict("fine", "fine", f"{it.name} is ready: {works} (standalone, no API server){waiting}.")
    return it.verdict(
        "fine", "fine", f"{it.name} is Ready: {works}, and the API server heard of it {it.heard_of()}{waiting}."
    )
