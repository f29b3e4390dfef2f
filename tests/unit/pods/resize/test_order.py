"""Which of several resizes that wait is looked at first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from glasslet.api.pod import Pod
from glasslet.concurrency.clock import SystemClock
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.resize.decision import Decision, Deferred, Granted
from tests.builders.podspec import pod_of


def asking(uid: str, before: str, after: str, **spec: Any) -> tuple[Pod, Pod]:
    """A pod with what it has, and with what it wants."""

    def of(cpu: str) -> Pod:
        return pod_of({"resources": {"requests": {"cpu": cpu}} | spec.get("more", {})}, meta={"uid": uid}, **plain)

    plain = {name: value for name, value in spec.items() if name != "more"}
    return of(before), of(after)


def looked_at(pods: Sequence[tuple[Pod, Pod]]) -> list[str]:
    """Uids in the order in which they are tried again, all having been deferred in this order."""
    room = False

    def judge(wanted: Pod, allocated: Pod, others: Sequence[Pod]) -> Decision:
        return Granted() if room else Deferred(message="no room")

    allocations = Allocations(judge=judge, clock=SystemClock())
    for has, wants in pods:
        allocations.begin(has)
        allocations.take(wants, lambda: ())
    room = True
    return [pod.metadata.uid for pod in allocations.retry("test", lambda uid: ())]


# behaviours.md §26: "Order: non-increasing first, priority, QoS, longest waiting."
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (asking("a", "2", "1"), asking("b", "1", "2", priority=5)),
        (asking("a", "1", "2", priority=5), asking("b", "1", "2", priority=4)),
        (
            asking(
                "a",
                "1",
                "2",
                resources={"requests": {"cpu": "2", "memory": "1"}, "limits": {"cpu": "2", "memory": "1"}},
            ),
            asking("b", "1", "2"),
        ),
    ],
    ids=["what gives something back", "priority", "class"],
)
def test_the_more_deserving_resize_is_first_however_long_others_wait(
    first: tuple[Pod, Pod], second: tuple[Pod, Pod]
) -> None:
    assert looked_at([first, second]) == looked_at([second, first]) == ["a", "b"]


def test_of_equals_the_one_that_waits_longest_is_first() -> None:
    assert looked_at([asking("b", "1", "2"), asking("a", "1", "2")]) == ["b", "a"]
