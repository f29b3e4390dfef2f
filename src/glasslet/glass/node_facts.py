"""Gathers the facts that `glasslet why node` is answered from. Sends nothing, waits for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.node import NodeCondition
from glasslet.concurrency.clock import Clock
from glasslet.glass.verdicts.api_causes import GOOD, LastTry, TryResult
from glasslet.glass.verdicts.node_rules import NodeSituation
from glasslet.glass.verdicts.runtime_causes import RuntimeState
from glasslet.kubeapi.errors import Forbidden, Throttled, Unauthorized, Unavailable
from glasslet.node.agent import NodeAgent
from glasslet.node.request_trouble import RequestTrouble
from glasslet.node.status.compose import ready_condition
from glasslet.record.history import LiveWait
from glasslet.record.stations import WaitKind
from glasslet.runtime.observed import RuntimeConditions

_NO_CONDITION = NodeCondition(type="Ready", status="")


class ClusterView(Struct, frozen=True, kw_only=True):
    """The node's dealings with the API server. `server`: its URL; `registers`: whether the agent creates the Node;
    `expired_at`: the end of an expired client certificate; may raise OSError."""

    node: NodeAgent
    server: str
    registers: bool
    lease_seconds: int
    expired_at: Callable[[], datetime | None]


class NodeSituationReader:
    """Returns the node's situation. `cluster` None: standalone; `waiting_for`: sources that have not reported;
    `waits`: every live wait; `endpoint`: the runtime's; `request_seconds`: runtimeRequestTimeout."""

    def __init__(
        self,
        *,
        name: str,
        clock: Clock,
        conditions: RuntimeConditions,
        waiting_for: Callable[[], Iterable[str]],
        waits: Callable[[], Iterable[LiveWait]],
        endpoint: str,
        request_seconds: float,
        cluster: ClusterView | None,
    ) -> None:
        self._name = name
        self._clock = clock
        self._conditions = conditions
        self._waiting_for = waiting_for
        self._waits = waits
        self._endpoint = endpoint
        self._request_seconds = request_seconds
        self._cluster = cluster

    def __call__(self) -> NodeSituation:
        """The situation now."""
        alone = NodeSituation(
            name=self._name,
            now=self._clock.now(),
            standalone=self._cluster is None,
            runtime=self._runtime(),
            waiting_sources=tuple(sorted(self._waiting_for())),
        )
        return alone if self._cluster is None else self._in_cluster(alone, self._cluster)

    def _runtime(self) -> RuntimeState:
        it = self._conditions
        return RuntimeState(
            now=self._clock.now(),
            endpoint=self._endpoint,
            errors=tuple(it.runtime_errors()),
            said=it.failure.said if it.failure is not None else "",
            since=it.runtime_since,
            process=it.process(),
            request_seconds=self._request_seconds,
            calls=tuple(one for one in self._waits() if one.pod is None and one.kind == WaitKind.CRI_CALL),
            network_error=it.network_error() or "",
            network_load=it.network_load,
            network_since=it.network_since,
        )

    def _in_cluster(self, alone: NodeSituation, cluster: ClusterView) -> NodeSituation:
        node = cluster.node
        own = ready_condition(node.initial())
        reported = (ready_condition(node.known.node) if node.known.node is not None else None) or _NO_CONDITION
        renewed = node.lease.renewed_at
        ago = self._clock.monotonic() - renewed if renewed is not None else None
        return replace(
            alone,
            server=cluster.server,
            registers=cluster.registers,
            deleted_at=node.known.deleted_at,
            registered=node.known.node is not None,
            registration=last_try(node.registration.trouble),
            lease=last_try(node.lease.trouble),
            lease_renewed_at=alone.now - timedelta(seconds=ago) if ago is not None else None,
            lease_seconds=cluster.lease_seconds,
            report=last_try(node.status.trouble),
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


def last_try(trouble: RequestTrouble) -> LastTry:
    """The result of the last request."""
    problem = trouble.error
    if problem is None:
        return GOOD
    match problem:
        case Unauthorized() | Forbidden():
            result = TryResult.REFUSED
        case Unavailable() | Throttled():
            result = TryResult.NO_ANSWER
        case _:
            result = TryResult.OTHER
    return LastTry(
        result=result,
        said=str(problem),
        message=problem.message,
        code=problem.code,
        obstacle=problem.obstacle if isinstance(problem, Unavailable) else None,
        since=trouble.since,
    )
