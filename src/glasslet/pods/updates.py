"""Updates and kills that reach a worker between two rounds, merged into one: the content of its mailbox slot. Pure.

The newest spec wins, a grace only shrinks, the first verdict stays, and a kill is never lost.
"""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.exchange.facts import StatusOverride


class Kill(Struct, frozen=True, kw_only=True):
    """The pod has to stop. `grace`: seconds; None means the pod's own."""

    grace: int | None = None
    verdict: StatusOverride | None = None
    removed: bool = False
    """No source wants the pod any more."""


class Mail(Struct, frozen=True, kw_only=True):
    """The newest pod since the last round, and whether it has to stop."""

    pod: Pod | None = None
    kill: Kill | None = None


def mail_of(update: PodUpdate) -> Mail:
    """A source's update as mail."""
    kill = None
    if update.kind is UpdateKind.REMOVE:
        kill = Kill(removed=True)
    elif update.kind is UpdateKind.DELETE or update.pod.metadata.deletion_timestamp is not None:
        kill = Kill(grace=update.pod.metadata.deletion_grace_period_seconds)
    return Mail(pod=update.pod, kill=kill)


def merge(old: Mail, new: Mail) -> Mail:
    """Both together; `new` came last."""
    return Mail(pod=new.pod or old.pod, kill=merge_kills(old.kill, new.kill))


def merge_kills(old: Kill | None, new: Kill | None) -> Kill | None:
    """One kill from two: the shorter grace, the first verdict."""
    if old is None or new is None:
        return old or new
    graces = [kill.grace for kill in (old, new) if kill.grace is not None]
    return Kill(
        grace=min(graces) if graces else None,
        verdict=old.verdict or new.verdict,
        removed=old.removed or new.removed,
    )
