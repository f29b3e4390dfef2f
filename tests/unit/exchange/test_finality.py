"""What ended stays ended, unless its policy starts it again."""

from __future__ import annotations

import pytest

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodStatus,
)
from glasslet.exchange.finality import comes_back_from_its_end
from tests.builders.pod import container, pod, sidecar

RUNNING = ContainerState(running=ContainerStateRunning())
WAITING = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))


def ended(code: int) -> ContainerState:
    return ContainerState(terminated=ContainerStateTerminated(exit_code=code))


def status(state: ContainerState, *, init: bool = False, name: str = "main") -> PodStatus:
    one = ContainerStatus(name=name, state=state, ready=False, restart_count=0, image="", image_id="")
    return PodStatus(init_container_statuses=(one,)) if init else PodStatus(container_statuses=(one,))


def with_policy(policy: str, *, init: tuple[Container, ...] = ()) -> Pod:
    return pod(init=init, restart_policy=policy)


@pytest.mark.parametrize("after", [RUNNING, WAITING], ids=["running", "waiting"])
@pytest.mark.parametrize(
    ("policy", "code", "illegal"),
    [
        ("Always", 0, False),
        ("Always", 1, False),
        ("OnFailure", 1, False),
        ("OnFailure", 0, True),
        ("Never", 0, True),
        ("Never", 1, True),
    ],
)
def test_a_regular_container_comes_back_only_by_its_policy(
    policy: str, code: int, illegal: bool, after: ContainerState
) -> None:
    # behaviours.md §5: "A status that would take a terminated container back to running against its policy is not
    # sent."
    found = comes_back_from_its_end(with_policy(policy), status(ended(code)), status(after))
    assert found == ("main" if illegal else None)


@pytest.mark.parametrize(
    ("policy", "code", "illegal"),
    [("Always", 0, False), ("Always", 1, False), ("OnFailure", 1, False), ("OnFailure", 0, True), ("Never", 1, True)],
)
def test_an_init_container_comes_back_only_by_its_policy(policy: str, code: int, illegal: bool) -> None:
    made = with_policy(policy, init=(container("setup"),))
    found = comes_back_from_its_end(
        made, status(ended(code), init=True, name="setup"), status(RUNNING, init=True, name="setup")
    )
    assert found == ("setup" if illegal else None)


def test_a_sidecar_always_comes_back() -> None:
    made = with_policy("Never", init=(sidecar(),))
    before, after = status(ended(0), init=True, name="side"), status(RUNNING, init=True, name="side")
    assert comes_back_from_its_end(made, before, after) is None


@pytest.mark.parametrize(
    ("before", "after"), [(RUNNING, ended(1)), (WAITING, RUNNING), (ended(1), ended(1)), (RUNNING, WAITING)]
)
def test_nothing_else_is_illegal(before: ContainerState, after: ContainerState) -> None:
    assert comes_back_from_its_end(with_policy("Never"), status(before), status(after)) is None


def test_a_container_that_is_not_told_of_any_more_is_no_transition() -> None:
    assert comes_back_from_its_end(with_policy("Never"), status(ended(0)), PodStatus()) is None
