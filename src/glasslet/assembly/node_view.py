"""What is known of the node as a whole, gathered for `glasslet why node`."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from glasslet.api.node import NodeCondition
from glasslet.assembly.pods import PodSide
from glasslet.assembly.sides import Sides
from glasslet.glass.verdicts.whole_node import GOOD, Answer, LastTry, NodeSituation
from glasslet.kubeapi.errors import APIError, Forbidden, Throttled, Unauthorized, Unavailable
from glasslet.node.status.compose import ready_condition

_NOTHING = NodeCondition(type="Ready", status="")


class NodeSituations:
    """Gives the situation of now."""

    def __init__(self, *, sides: Sides, pods: PodSide) -> None:
        self._foundation = sides.foundation
        self._runtime = sides.runtime
        self._pods = pods
        self._cluster = sides.cluster

    def __call__(self) -> NodeSituation:
        """Reads what is there, asks nobody."""
        conditions, clock = self._runtime.conditions, self._foundation.clock
        alone = NodeSituation(
            name=self._foundation.node_name,
            now=clock.now(),
            standalone=self._cluster is None,
            runtime_errors=tuple(conditions.runtime_errors()),
            network_error=conditions.network_error() or "",
            waiting_sources=tuple(sorted(self._pods.desired.waiting_for())),
        )
        if self._cluster is None:
            return alone
        node = self._cluster.node
        own = ready_condition(node.initial())
        told = (ready_condition(node.known.node) if node.known.node is not None else None) or _NOTHING
        renewed = node.lease.renewed_at
        return replace(
            alone,
            registered=node.known.node is not None,
            registration=last_try(node.registration.problem),
            lease=last_try(node.lease.problem),
            lease_renewed_at=alone.now - timedelta(seconds=clock.monotonic() - renewed)
            if renewed is not None
            else None,
            lease_seconds=self._foundation.configuration.node_lease_duration_seconds,
            report=last_try(node.status.problem),
            certificate_expired_at=self._certificate_expired_at(),
            not_ready=own.message if own is not None and own.status != "True" else "",
            told=told.status,
            told_reason=told.reason,
            told_message=told.message,
            told_since=told.last_transition_time,
        )

    def _certificate_expired_at(self) -> datetime | None:
        identity = self._foundation.identity
        try:
            return identity.expired_at() if identity is not None else None
        except OSError:
            # A kubeconfig that cannot be looked at says nothing; what requests end with does.
            return None


def last_try(problem: APIError | None) -> LastTry:
    """How a request ended."""
    match problem:
        case None:
            return GOOD
        case Unauthorized() | Forbidden():
            return LastTry(answer=Answer.REFUSED, said=str(problem))
        case Unavailable() | Throttled():
            return LastTry(answer=Answer.NONE, said=str(problem))
        case _:
            return LastTry(answer=Answer.OTHER, said=str(problem))
