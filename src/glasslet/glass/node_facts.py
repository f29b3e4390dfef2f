"""Gathers the facts that `glasslet why node` is answered from. Sends nothing, waits for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from glasslet.api.node import NodeCondition
from glasslet.concurrency.clock import Clock
from glasslet.glass.verdicts.node_rules import GOOD, LastTry, NodeSituation, TryResult
from glasslet.kubeapi.errors import APIError, Forbidden, Throttled, Unauthorized, Unavailable
from glasslet.node.agent import NodeAgent
from glasslet.node.status.compose import ready_condition
from glasslet.runtime.observed import RuntimeConditions

_NO_CONDITION = NodeCondition(type="Ready", status="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The node's dealings with the API server. `expired_at`: the end of an expired client certificate; may raise
    OSError."""

    node: NodeAgent
    lease_seconds: int
    expired_at: Callable[[], datetime | None]


class NodeSituationReader:
    """Returns the node's situation. `cluster` None: standalone; `waiting_for`: sources that have not reported."""

    def __init__(
        self,
        *,
        name: str,
        clock: Clock,
        conditions: RuntimeConditions,
        waiting_for: Callable[[], Iterable[str]],
        cluster: ClusterView | None,
    ) -> None:
        self._name = name
        self._clock = clock
        self._conditions = conditions
        self._waiting_for = waiting_for
        self._cluster = cluster

    def __call__(self) -> NodeSituation:
        """The situation now."""
        alone = NodeSituation(
            name=self._name,
            now=self._clock.now(),
            standalone=self._cluster is None,
            runtime_errors=tuple(self._conditions.runtime_errors()),
            network_error=self._conditions.network_error() or "",
            waiting_sources=tuple(sorted(self._waiting_for())),
        )
        return alone if self._cluster is None else self._in_cluster(alone, self._cluster)

    def _in_cluster(self, alone: NodeSituation, cluster: ClusterView) -> NodeSituation:
        node = cluster.node
        own = ready_condition(node.initial())
        reported = (ready_condition(node.known.node) if node.known.node is not None else None) or _NO_CONDITION
        renewed = node.lease.renewed_at
        ago = self._clock.monotonic() - renewed if renewed is not None else None
        return replace(
            alone,
            registered=node.known.node is not None,
            registration=last_try(node.registration.problem),
            lease=last_try(node.lease.problem),
            lease_renewed_at=alone.now - timedelta(seconds=ago) if ago is not None else None,
            lease_seconds=cluster.lease_seconds,
            report=last_try(node.status.problem),
            certificate_expired_at=_expired_at(cluster),
            not_ready=own.message if own is not None and own.status != "True" else "",
            reported=reported.status,
            reported_reason=reported.reason,
            reported_message=reported.message,
            reported_since=reported.last_transition_time,
        )


def _expired_at(cluster: ClusterView) -> datetime | None:
    try:
        return cluster.expired_at()
    except OSError:
        # An unreadable kubeconfig proves nothing about the certificate; the errors of requests do.
        return None


def last_try(problem: APIError | None) -> LastTry:
    """The result of a request that ended with `problem`."""
    match problem:
        case None:
            return GOOD
        case Unauthorized() | Forbidden():
            return LastTry(result=TryResult.REFUSED, said=str(problem))
        case Unavailable() | Throttled():
            return LastTry(result=TryResult.NO_ANSWER, said=str(problem))
        case _:
            return LastTry(result=TryResult.OTHER, said=str(problem))
