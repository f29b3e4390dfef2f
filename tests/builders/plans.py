"""Plans for tests, in words: what is given is a healthy pod of one container, but for what a test changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from glasslet.api.container import Container
from glasslet.pods.planner import (
    Action,
    CreateSandbox,
    KillContainer,
    PlanInput,
    PreparePod,
    RemoveContainer,
    StartContainer,
    StopOldSandbox,
    plan,
)
from glasslet.podspec.labels import HASH, container_hash
from glasslet.runtime.model import ContainerPhase, ObservedContainer
from tests.builders.observed import (
    START,
    observed_container,
    observed_pod,
)
from tests.builders.pod import pod

NOW = START + timedelta(hours=1)
CREATED = ContainerPhase.CREATED
UNKNOWN = ContainerPhase.UNKNOWN


def given(**changes: Any) -> PlanInput:
    """A healthy pair: a prepared pod with one container, which runs."""
    facts: dict[str, Any] = {
        "pod": pod(),
        "observed": observed_pod(observed_container()),
        "now": NOW,
        "prepared": True,
    }
    return PlanInput(**(facts | changes))


def in_words(actions: tuple[Action, ...]) -> list[str]:
    """Actions short enough to compare by eye."""
    words = []
    for action in actions:
        match action:
            case StartContainer():
                attempt = "?" if action.attempt is None else action.attempt
                words.append(f"{'adopt' if action.adopt else 'start'} {action.name} {attempt}")
            case KillContainer():
                words.append(f"kill {action.id} in {action.grace}")
            case RemoveContainer():
                words.append(f"remove {action.id}")
            case CreateSandbox():
                words.append(f"sandbox {action.attempt}")
            case StopOldSandbox():
                words.append(f"stop all in {action.grace}")
            case PreparePod():
                words.append("prepare")
    return words


def planned(**changes: Any) -> list[str]:
    """The actions for the healthy pair with something changed; "ended" if the pod is done."""
    found = plan(given(**changes))
    return in_words(found.actions) + (["ended"] if found.ended else [])


def made_from(one: Container, instance: ObservedContainer) -> ObservedContainer:
    """The instance with the hash that this container has."""
    return observed_container(
        instance.name, instance.attempt, phase=instance.phase, annotations={HASH: container_hash(one)}
    )
