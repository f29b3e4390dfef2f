"""No pod comes while the node goes down."""

from __future__ import annotations

from collections.abc import Callable

from glasslet.admission.candidate import Candidate, Rule
from glasslet.exchange.admission import Rejected


def node_shutdown_rule(*, shutting_down: Callable[[], bool]) -> Rule:
    """Refuses every pod during a graceful shutdown."""

    def rule(_: Candidate) -> Rejected | None:
        if not shutting_down():
            return None
        return Rejected(reason="NodeShutdown", message="Pod was rejected as the node is shutting down.")

    return rule
