"""What is asked of a pod between two looks of its worker, merged into one: the content of the mailbox slot. Pure.

The newest spec wins, a grace only shrinks, the first verdict stays, and a kill is never lost.
"""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.exchange.facts import StatusOverride


class Kill(Struct, frozen=True, kw_only=True):
    """The pod has to stop. `grace`: seconds asked for, None for what the pod says itself."""

    grace: int | None = None
    verdict: StatusOverride | None = None
    removed: bool = False
    """No source wants the pod any more."""


class Ask(Struct, frozen=True, kw_only=True):
    """Everything asked since the last look: the newest pod, and whether it has to stop."""

    pod: Pod | None = None
    kill: Kill | None = None


def ask_of(update: PodUpdate) -> Ask:
    """What a source's update asks."""
    kill = None
    if update.kind is UpdateKind.REMOVE:
        kill = Kill(removed=True)
    elif update.kind is UpdateKind.DELETE or update.pod.metadata.deletion_timestamp is not None:
        kill = Kill(grace=update.pod.metadata.deletion_grace_period_seconds)
    return Ask(pod=update.pod, kill=kill)


def merge(old: Ask, new: Ask) -> Ask:
    """Both asked, `new` last."""
    return Ask(pod=new.pod or old.pod, kill=merge_kills(old.kill, new.kill))


def merge_kills(old: Kill | None, new: Kill | None) -> Kill | None:
    """The sharper of two kills."""
    if old is None or new is None:
        return old or new
    graces = [kill.grace for kill in (old, new) if kill.grace is not None]
    return Kill(
        grace=min(graces) if graces else None,
        verdict=old.verdict or new.verdict,
        removed=old.removed or new.removed,
    )
