"""What the intake gives to the workers, and when orphans are looked for."""

from __future__ import annotations

import pytest

from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.pods.intake import PodIntake
from tests.builders.pod import pod, update


class World:
    """Notes what the intake does."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.done: list[str | PodUpdate] = []
        self.intake = PodIntake(
            tidy=lambda: self.done.append("tidy"), update=self.done.append, enabled=lambda gate: enabled
        )


def test_orphans_are_stopped_before_a_new_pod_is_taken_in() -> None:
    world, new = World(), update(pod())
    world.intake.deliver([new])
    assert world.done == ["tidy", new]


def test_orphans_are_looked_for_when_a_source_reports_for_the_first_time() -> None:
    world = World()
    world.intake.deliver([])
    assert world.done == ["tidy"]


@pytest.mark.parametrize("kind", [UpdateKind.UPDATE, UpdateKind.DELETE, UpdateKind.REMOVE])
def test_other_updates_go_straight_to_the_workers(kind: UpdateKind) -> None:
    world, change = World(), update(pod(), kind)
    world.intake.deliver([change])
    assert world.done == [change]


def test_a_field_whose_gate_is_off_does_not_reach_the_workers() -> None:
    world, new = World(enabled=False), update(pod(hostname_override="other"))
    world.intake.deliver([new])
    taken = world.done[-1]
    assert isinstance(taken, PodUpdate)
    assert taken.pod.spec.hostname_override is None
