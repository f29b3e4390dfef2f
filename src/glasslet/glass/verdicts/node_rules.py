"""Why the node is Ready or not: rules over the agent's own facts, tried in order, causes before consequences.

node_verdict(NodeSituation(...)) -> VerdictAnswer
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.why import Evidence, VerdictAnswer
from glasslet.answers.words import duration
from glasslet.glass.verdicts.api_causes import GOOD, LastTry, TryResult, api_cause
from glasslet.glass.verdicts.dating import dated
from glasslet.glass.verdicts.runtime_causes import (
    RuntimeState,
    network_cause,
    process_evidence,
    runtime_cause,
    runtime_since,
)


class NodeSituation(Struct, frozen=True, kw_only=True):
    """The node at time `now`. `server`: the API server's URL; `reported*`: the Ready condition that the API server has
    ("" if none); `not_ready`: the reason that the agent would report now, "" if Ready; `registers`: whether the agent
    creates the Node; `deleted_at`: when the Node was deleted, if it was; `waiting_sources`: pod sources that have not
    reported yet."""

    name: str
    now: datetime
    standalone: bool = False
    server: str = ""
    registers: bool = True
    registered: bool = True
    deleted_at: datetime | None = None
    registration: LastTry = GOOD
    lease: LastTry = GOOD
    lease_renewed_at: datetime | None = None
    lease_seconds: int = 0
    report: LastTry = GOOD
    certificate_expired_at: datetime | None = None
    runtime: RuntimeState
    not_ready: str = ""
    reported: str = ""
    reported_reason: str = ""
    reported_message: str = ""
    reported_since: datetime | None = None
    waiting_sources: tuple[str, ...] = ()

    def heartbeat(self) -> str:
        """How long ago the API server accepted the last heartbeat, in words."""
        if self.lease_renewed_at is None:
            return "none by this agent"
        return f"{duration((self.now - self.lease_renewed_at).total_seconds())} ago"

    def tries(self) -> tuple[LastTry, ...]:
        """The last requests of each kind that is sent now."""
        return (self.lease, self.report) if self.registered else (self.registration, self.lease, self.report)

    def for_the_cluster(self) -> str:
        """What the cluster makes of it that heartbeats fail."""
        late = self.lease_renewed_at is None or (self.now - self.lease_renewed_at).total_seconds() > self.lease_seconds
        return "is NotReady for the cluster" if late else "will soon be NotReady for the cluster"

    def verdict(
        self,
        rule: Rule,
        state: VerdictState,
        sentence: str,
        *,
        evidence: Sequence[tuple[str, str]] = (),
        next_step: str = "",
        since: datetime | None = None,
    ) -> VerdictAnswer:
        """A verdict on this node; empty evidence is left out. `since`: when the cause began, for the sentence."""
        reported = f"{self.reported} ({self.reported_reason}): {self.reported_message}" if self.reported else ""
        common = () if self.standalone else (("API server has", reported), ("last heartbeat", self.heartbeat()))
        return VerdictAnswer(
            namespace="",
            name=self.name,
            rule=rule,
            state=state,
            sentence=dated(sentence, since, self.now),
            evidence=tuple(Evidence(label=label, text=text) for label, text in (*evidence, *common) if text),
            next_step=next_step,
            since=since or self.reported_since,
        )


def node_verdict(it: NodeSituation) -> VerdictAnswer:
    """The verdict on the node."""
    for rule in RULES:
        if verdict := rule(it):
            return verdict
    return _fine(it)


def certificate_expired(it: NodeSituation) -> VerdictAnswer | None:
    """The API server accepts nothing from a node whose certificate has expired."""
    if it.certificate_expired_at is None:
        return None
    return it.verdict(
        Rule.CERTIFICATE_EXPIRED,
        VerdictState.FAILING,
        f"{it.name} is NotReady: its client certificate expired, and the API server accepts nothing from it.",
        since=it.certificate_expired_at,
        evidence=[("registration", it.registration.said), ("lease", it.lease.said)],
        next_step="get new credentials for this node (with kubeadm: kubeadm join again; else a bootstrap kubeconfig); "
        "if the node's clock is wrong, set it",
    )


def credentials_refused(it: NodeSituation) -> VerdictAnswer | None:
    """The API server does not know who the node is (401)."""
    failed = next((one for one in it.tries() if one.code == _UNAUTHORIZED or _is_local(one)), None)
    if failed is None:
        return None
    cause = api_cause(failed, it.server)
    return it.verdict(
        Rule.CREDENTIALS_REFUSED,
        VerdictState.FAILING,
        f"{it.name} {it.for_the_cluster()}: {failed.message if _is_local(failed) else cause.words}.",
        since=failed.since,
        evidence=[("last try", failed.said)],
        next_step="correct the file that it names; the agent reads it again" if _is_local(failed) else cause.next_step,
    )


_UNAUTHORIZED = 401


def _is_local(tried: LastTry) -> bool:
    """Whether the credentials could not even be read: no request was sent."""
    return tried.result is TryResult.REFUSED and tried.code == 0 and bool(tried.message)


def registration_refused(it: NodeSituation) -> VerdictAnswer | None:
    """The API server answers and refuses the node."""
    if it.registered or it.registration.result not in (TryResult.REFUSED, TryResult.OTHER):
        return None
    cause = api_cause(it.registration, it.server)
    return it.verdict(
        Rule.REGISTRATION_REFUSED,
        VerdictState.FAILING,
        f"{it.name} is not a node of the cluster: when it registers, {cause.words}.",
        since=it.registration.since,
        evidence=[("it said", it.registration.said)],
        next_step="check the user of the kubeconfig (system:node:<name>, group system:nodes), and the node's name "
        "and labels",
    )


def api_unreachable(it: NodeSituation) -> VerdictAnswer | None:
    """Requests to the API server get no answer."""
    failed = next((one for one in it.tries() if one.result is TryResult.NO_ANSWER), None)
    if failed is None:
        return None
    cause = api_cause(failed, it.server)
    return it.verdict(
        Rule.API_UNREACHABLE,
        VerdictState.FAILING,
        f"{it.name} {it.for_the_cluster()}: {cause.words}.",
        since=failed.since,
        evidence=[("last try", failed.said), ("runtime", "; ".join(it.runtime.errors))],
        next_step=f"{cause.next_step}; pods go on, and statuses follow when it is back",
    )


def not_registered(it: NodeSituation) -> VerdictAnswer | None:
    """There is no Node object."""
    if it.registered or it.standalone:
        return None
    if it.registers:
        why = "its Node was deleted, and is created again" if it.deleted_at else "its first registration is under way"
        step = "nothing: the agent tries again"
    else:
        why = "its Node was deleted" if it.deleted_at else f"the API server {it.server} has no Node of this name"
        why += ", and registerNode is false, so that the agent creates none"
        step = f"create the Node {it.name}, or set registerNode: true"
    return it.verdict(
        Rule.NOT_REGISTERED,
        VerdictState.STARTING if it.registers else VerdictState.FAILING,
        f"{it.name} is not a node of the cluster: {why}.",
        since=it.deleted_at,
        evidence=[("it said", it.registration.said)],
        next_step=step,
    )


def lease_failing(it: NodeSituation) -> VerdictAnswer | None:
    """Without a lease the controllers declare the node dead, however healthy it is."""
    if it.lease.result is TryResult.GOOD:
        return None
    cause = api_cause(it.lease, it.server)
    return it.verdict(
        Rule.LEASE_FAILING,
        VerdictState.FAILING,
        f"{it.name} {it.for_the_cluster()}: its lease is not renewed, because {cause.words}.",
        since=it.lease.since,
        evidence=[
            ("it said", it.lease.said),
            ("means", f"without a lease the cluster declares the node dead after {it.lease_seconds} s"),
        ],
        next_step=f"check the node's rights on leases in the namespace kube-node-lease: {cause.next_step}",
    )


def runtime_down(it: NodeSituation) -> VerdictAnswer | None:
    """No container can be started or stopped."""
    if (cause := runtime_cause(it.runtime)) is None:
        return None
    return it.verdict(
        Rule.RUNTIME_DOWN,
        VerdictState.FAILING,
        f"{it.name} {'is' if it.runtime.errors else 'will soon be'} NotReady: {cause.words}.",
        since=runtime_since(it.runtime),
        evidence=[
            ("runtime", "; ".join(it.runtime.errors)),
            ("process", process_evidence(it.runtime.process)),
            ("last answer", it.runtime.said),
            ("network", it.runtime.network_error),
        ],
        next_step=cause.next_step,
    )


def network_not_ready(it: NodeSituation) -> VerdictAnswer | None:
    """No pod can get an address."""
    if (cause := network_cause(it.runtime)) is None:
        return None
    return it.verdict(
        Rule.NETWORK_NOT_READY,
        VerdictState.FAILING,
        f"{it.name} is NotReady: pods get no network: {cause.words}.",
        since=it.runtime.network_since,
        evidence=[("network", it.runtime.network_error), ("it said", it.runtime.network_load)],
        next_step=cause.next_step,
    )


def not_ready(it: NodeSituation) -> VerdictAnswer | None:
    """Any other reason that the agent itself reports."""
    if not it.not_ready:
        return None
    return it.verdict(
        Rule.NOT_READY,
        VerdictState.FAILING,
        f"{it.name} is NotReady: {it.not_ready.removesuffix('.')}.",
        since=it.reported_since if it.reported == "False" else None,
        evidence=[("agent", it.not_ready)],
        next_step="see what the agent waits for: glasslet waits, glasslet trace --agent",
    )


def not_reported(it: NodeSituation) -> VerdictAnswer | None:
    """The node is ready, and the API server shows something else."""
    if it.standalone or it.reported == "True":
        return None
    if it.report.result is not TryResult.GOOD:
        cause = api_cause(it.report, it.server)
        why, evidence = f"its status is not taken: {cause.words}", [("it said", it.report.said)]
    elif it.reported == "Unknown":
        why, evidence = "a controller missed its heartbeats, and its next report is not sent yet", []
    else:
        why, evidence = "its report is not sent yet", []
    return it.verdict(
        Rule.NOT_REPORTED,
        VerdictState.WAITING,
        f"{it.name} is ready, but NotReady for the cluster: {why}.",
        evidence=evidence,
        since=it.report.since or it.reported_since,
        next_step="wait for the next report (seconds); then check the agent's log",
    )


RULES: tuple[Callable[[NodeSituation], VerdictAnswer | None], ...] = (
    certificate_expired,
    credentials_refused,
    registration_refused,
    api_unreachable,
    not_registered,
    lease_failing,
    runtime_down,
    network_not_ready,
    not_ready,
    not_reported,
)


def _fine(it: NodeSituation) -> VerdictAnswer:
    waiting = f"; pods of {', '.join(it.waiting_sources)} have not been listed yet" if it.waiting_sources else ""
    works = "the runtime and its network work"
    sentence = (
        f"{it.name} is ready: {works} (standalone, no API server){waiting}."
        if it.standalone
        else f"{it.name} is Ready: {works}; last heartbeat: {it.heartbeat()}{waiting}."
    )
    return it.verdict(Rule.FINE, VerdictState.FINE, sentence)
