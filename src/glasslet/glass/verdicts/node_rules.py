"""Why the node is Ready or not: rules over the agent's own facts, tried in order, causes before consequences.

node_verdict(NodeSituation(...)) -> VerdictAnswer
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.why import Evidence, VerdictAnswer
from glasslet.answers.words import duration


class TryResult(StrEnum):
    """The result of a request to the API server, by what it means."""

    GOOD = "good"
    REFUSED = "refused"
    """401 or 403."""
    NO_ANSWER = "no answer"
    """No connection, no answer in time, or 5xx."""
    OTHER = "other"


class LastTry(Struct, frozen=True, kw_only=True):
    """The result of the last request of one kind; `said`: the text of the error."""

    result: TryResult = TryResult.GOOD
    said: str = ""


GOOD = LastTry()


class NodeSituation(Struct, frozen=True, kw_only=True):
    """The node at time `now`. `reported*`: the Ready condition that the API server has ("" if none); `not_ready`: the
    reason that the agent would report now, "" if Ready; `waiting_sources`: pod sources that have not reported yet."""

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

    def verdict(
        self,
        rule: Rule,
        state: VerdictState,
        sentence: str,
        *,
        evidence: Sequence[tuple[str, str]] = (),
        next_step: str = "",
    ) -> VerdictAnswer:
        """A verdict on this node; empty evidence is left out."""
        reported = f"{self.reported} ({self.reported_reason}): {self.reported_message}" if self.reported else ""
        common = () if self.standalone else (("API server has", reported), ("last heartbeat", self.heartbeat()))
        return VerdictAnswer(
            namespace="",
            name=self.name,
            rule=rule,
            state=state,
            sentence=sentence,
            evidence=tuple(Evidence(label=label, text=text) for label, text in (*evidence, *common) if text),
            next_step=next_step,
            since=self.reported_since,
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
        f"{it.name} is NotReady: its client certificate expired {it.certificate_expired_at:%FT%TZ}, and the API server "
        "accepts nothing from it.",
        evidence=[("registration", it.registration.said), ("lease", it.lease.said)],
        next_step="get new credentials for this node; the agent's findings and log list the steps",
    )


def registration_refused(it: NodeSituation) -> VerdictAnswer | None:
    """The API server answers and refuses the node."""
    if it.registered or it.registration.result not in (TryResult.REFUSED, TryResult.OTHER):
        return None
    return it.verdict(
        Rule.REGISTRATION_REFUSED,
        VerdictState.FAILING,
        f"{it.name} is not a node of the cluster: the API server refuses its registration.",
        evidence=[("it said", it.registration.said)],
        next_step="check the user of the kubeconfig (system:node:<name>, group system:nodes) and at the node's name",
    )


def api_unreachable(it: NodeSituation) -> VerdictAnswer | None:
    """Requests to the API server get no answer."""
    tries = (it.registration if not it.registered else GOOD, it.lease, it.report)
    failed = next((one for one in tries if one.result is TryResult.NO_ANSWER), None)
    if failed is None:
        return None
    late = it.lease_renewed_at is None or (it.now - it.lease_renewed_at).total_seconds() > it.lease_seconds
    seen = "is NotReady for the cluster" if late else "may soon be NotReady for the cluster"
    return it.verdict(
        Rule.API_UNREACHABLE,
        VerdictState.FAILING,
        f"{it.name} {seen}: the API server cannot be reached.",
        evidence=[("last try", failed.said), ("runtime", "; ".join(it.runtime_errors))],
        next_step="check the API server and the connection to it; pods go on, and statuses follow when it is back",
    )


def not_registered(it: NodeSituation) -> VerdictAnswer | None:
    """There is no Node object yet."""
    if it.registered or it.standalone:
        return None
    return it.verdict(
        Rule.NOT_REGISTERED,
        VerdictState.STARTING,
        f"{it.name} is not registered at the API server yet.",
        evidence=[("it said", it.registration.said)],
        next_step="nothing: the agent tries again; with registerNode: false the operator has to create the Node",
    )


def lease_failing(it: NodeSituation) -> VerdictAnswer | None:
    """Without a lease the controllers declare the node dead, however healthy it is."""
    if it.lease.result is TryResult.GOOD:
        return None
    return it.verdict(
        Rule.LEASE_FAILING,
        VerdictState.FAILING,
        f"{it.name} cannot renew its lease: without it the cluster declares the node dead after {it.lease_seconds} s.",
        evidence=[("it said", it.lease.said)],
        next_step="check the node's rights on leases in the namespace kube-node-lease",
    )


def runtime_down(it: NodeSituation) -> VerdictAnswer | None:
    """No container can be started or stopped."""
    if not it.runtime_errors:
        return None
    return it.verdict(
        Rule.RUNTIME_DOWN,
        VerdictState.FAILING,
        f"{it.name} is NotReady: the container runtime is not ready.",
        evidence=[("runtime", "; ".join(it.runtime_errors)), ("network", it.network_error)],
        next_step="check the runtime's service and log (systemctl status containerd)",
    )


def network_not_ready(it: NodeSituation) -> VerdictAnswer | None:
    """No pod can get an address."""
    if not it.network_error:
        return None
    return it.verdict(
        Rule.NETWORK_NOT_READY,
        VerdictState.FAILING,
        f"{it.name} is NotReady: the runtime has no network for pods.",
        evidence=[("network", it.network_error)],
        next_step="install a CNI configuration (/etc/cni/net.d) and its plugins; the agent notices within seconds",
    )


def not_ready(it: NodeSituation) -> VerdictAnswer | None:
    """Any other reason that the agent itself reports."""
    if not it.not_ready:
        return None
    return it.verdict(
        Rule.NOT_READY,
        VerdictState.FAILING,
        f"{it.name} is NotReady: {it.not_ready}",
        evidence=[("agent", it.not_ready)],
    )


def not_reported(it: NodeSituation) -> VerdictAnswer | None:
    """The node is ready, and the API server shows something else."""
    if it.standalone or it.reported == "True":
        return None
    if it.report.result is not TryResult.GOOD:
        why, evidence = "the API server refuses its status", [("it said", it.report.said)]
    elif it.reported == "Unknown":
        why, evidence = "a controller missed its heartbeats, and its next report is not sent yet", []
    else:
        why, evidence = "its report is not sent yet", []
    return it.verdict(
        Rule.NOT_REPORTED,
        VerdictState.WAITING,
        f"{it.name} is ready, but NotReady for the cluster: {why}.",
        evidence=evidence,
        next_step="wait for the next report (seconds); then check the agent's log",
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
