"""When the volumes of a running pod are looked at again."""

from __future__ import annotations

import pytest

from glasslet.api.pod import Pod
from glasslet.pods.memory import PodMemory
from glasslet.pods.upkeep.refresh import refresh_due
from tests.builders.pod import pod, with_image


def memory(now: Pod, *, before: Pod | None = None, at: float | None = 100.0, stale: bool = False) -> PodMemory:
    return PodMemory(pod=now, refreshed_for=before or now, refreshed_at=at, stale=stale)


@pytest.mark.parametrize(("seconds", "due"), [(0.0, False), (59.9, False), (60.0, True)])
def test_volumes_are_looked_at_once_in_a_period(seconds: float, due: bool) -> None:
    assert refresh_due(memory(pod()), now=100.0 + seconds, every=60.0) is due


def test_volumes_that_this_agent_never_looked_at_are_due() -> None:
    assert refresh_due(memory(pod(), at=None), now=100.0, every=60.0)


def test_news_of_an_object_is_due_at_once() -> None:
    assert refresh_due(memory(pod(), stale=True), now=100.0, every=60.0)


@pytest.mark.parametrize("changed", [pod(annotations={"note": "x"}), with_image(pod(), "busybox:2")])
def test_a_changed_pod_is_due_at_once(changed: Pod) -> None:
    assert refresh_due(memory(changed, before=pod()), now=100.0, every=60.0)


def test_the_same_pod_read_again_is_not() -> None:
    assert not refresh_due(memory(pod(), before=pod()), now=100.0, every=60.0)
