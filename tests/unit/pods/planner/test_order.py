"""What runs beside what: groups of actions, the stop order, the turns of static pods, graces."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.object import ContainerID
from glasslet.concurrency.clock import LoopClock
from glasslet.pods.entrance import NameQueue
from glasslet.pods.executor import in_groups
from glasslet.pods.failures import Retry, pause_after
from glasslet.pods.planner import (
    Action,
    CreateSandbox,
    KillContainer,
    PreparePod,
    RemoveContainer,
    Role,
    StartContainer,
)
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.verbs.grace import probe_grace, restart_grace, termination_grace
from glasslet.pods.verbs.stop_pod import StopOrder
from glasslet.record.store import Record
from tests.builders.pod import api_pod, container, deleted, pod, post_start, sidecar


def start(name: str, role: Role = Role.REGULAR, *, hook: bool = False) -> StartContainer:
    return StartContainer(container=container(name, lifecycle=post_start("true") if hook else None), role=role)


def kill(name: str) -> KillContainer:
    return KillContainer(name=name, id=ContainerID(name), role=Role.REGULAR, grace=1, message="")


A, B, C = start("a"), start("b"), start("c")
HOOKED = start("hooked", hook=True)
INIT = start("init", Role.INIT)
GONE = RemoveContainer(name="a", id=ContainerID("a"))


@pytest.mark.parametrize(
    ("actions", "groups"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([A, B, C], [[A, B, C]], id="regular containers go together"),
        pytest.param([A, HOOKED, B, C], [[A, HOOKED], [B, C]], id="those after a postStart hook wait for it"),
        pytest.param([INIT, INIT], [[INIT], [INIT]], id="init containers go one by one"),
        pytest.param([INIT, A, B], [[INIT], [A, B]], id="regular containers wait for a sidecar"),
        pytest.param([kill("a"), kill("b"), A], [[kill("a"), kill("b")], [A]], id="kills go together, before starts"),
        pytest.param(
            [PreparePod(), CreateSandbox(attempt=0)], [[PreparePod()], [CreateSandbox(attempt=0)]], id="pod steps"
        ),
        pytest.param([GONE, GONE, INIT], [[GONE, GONE], [INIT]], id="removals go together"),
    ],
)
def test_actions_run_side_by_side_where_nothing_forbids_it(actions: list[Action], groups: list[list[Action]]) -> None:
    assert in_groups(actions) == groups


@pytest.mark.looptime
async def test_sidecars_stop_after_everything_that_may_use_them() -> None:
    one = pod(container("x"), container("y"), init=(sidecar("a"), container("setup"), sidecar("b")))
    order = StopOrder(one, ["x", "y", "a", "b"])
    log: list[str] = []

    async def stop(name: str, takes: float) -> None:
        if (turn := order.turn(name)) is not None:
            await turn()
        await asyncio.sleep(takes)
        log.append(name)
        order.ended(name)

    await asyncio.gather(stop("a", 0), stop("b", 1), stop("x", 3), stop("y", 2))
    assert log == ["y", "x", "b", "a"]


def test_a_sidecar_does_not_wait_for_what_does_not_run() -> None:
    one = pod(container("x"), init=(sidecar("a"), sidecar("b")))
    assert StopOrder(one, ["a"]).turn("a") is None


@pytest.mark.parametrize("name", ["x", "setup"])
def test_regular_and_plain_init_containers_stop_at_once(name: str) -> None:
    # behaviours.md §3: "Non-sidecar init containers stop at once."
    one = pod(container("x"), init=(sidecar("a"), container("setup")))
    assert StopOrder(one, ["x", "a", "setup"]).turn(name) is None


@pytest.mark.parametrize(
    ("spec", "deletion", "override", "before", "grace"),
    [
        (None, None, None, None, 30),
        (45, None, None, None, 45),
        (45, 60, None, None, 60),
        (45, 60, 10, None, 10),
        (45, 60, 10, 5, 5),
        (45, None, 90, None, 90),
        (0, None, None, None, 1),
        (45, 0, None, None, 1),
    ],
)
def test_the_grace_of_a_pod(
    spec: int | None, deletion: int | None, override: int | None, before: int | None, grace: int
) -> None:
    # behaviours.md §4: "Grace = smallest of deletionGracePeriodSeconds, the override (eviction, shutdown, preemption)
    # and any value used before; with none of them the spec value (API default 30). Minimum inside workers: 1 s."
    one = api_pod(termination_grace_period_seconds=spec)
    one = deleted(one, grace=deletion) if deletion is not None else one
    assert termination_grace(one, override=override, before=before) == grace


@pytest.mark.parametrize(
    ("deletion", "of_probe", "spec", "grace"),
    [(3, 9, 45, 3), (None, 9, 45, 9), (None, None, 45, 45), (None, None, None, 2)],
)
def test_the_grace_after_a_failed_probe(
    deletion: int | None, of_probe: int | None, spec: int | None, grace: int
) -> None:
    # behaviours.md §4: "deletionGracePeriodSeconds first, then the probe's terminationGracePeriodSeconds, then the
    # spec, else 2 s."
    one = api_pod(termination_grace_period_seconds=spec, deletion_grace_period_seconds=deletion)
    assert probe_grace(one, of_probe) == grace


def test_the_grace_of_a_container_that_is_replaced() -> None:
    assert restart_grace(pod(termination_grace_period_seconds=12)) == 12


@pytest.mark.parametrize(
    ("retry", "failures", "low", "high"),
    [
        (Retry.SOON, 1, 1, 1.5),
        (Retry.LATER, 1, 10, 15),
        (Retry.LATER, 9, 10, 15),
        (Retry.GROWING, 1, 0.5, 0.5),
        (Retry.GROWING, 4, 4, 4),
        (Retry.GROWING, 50, 122, 122),
    ],
)
def test_pauses_after_failures(retry: Retry, failures: int, low: float, high: float) -> None:
    # behaviours.md §1: "After an error: 10 s plus 0..50 %. After an error that tells of a network not ready: 1 s plus
    # 0..50 %."; §7: "Volume operations: 500 ms doubling to 2 min 2 s"
    assert low <= pause_after(retry, failures=failures, settings=WorkerSettings()) <= high


def queue() -> NameQueue:
    return NameQueue(Record(clock=LoopClock()))


def test_static_pods_of_one_name_take_turns_in_the_order_they_came() -> None:
    names, (first, second, third) = queue(), (pod(uid=uid) for uid in "abc")
    for one in (first, second, third):
        names.enter(one)
    assert [names.predecessor(one) for one in (first, second, third)] == [None, "a", "a"]
    names.leave(first)
    assert [names.predecessor(one) for one in (second, third)] == [None, "b"]


def test_other_names_and_api_pods_do_not_wait() -> None:
    names = queue()
    names.enter(pod(uid="a"))
    for one in (pod(uid="b", name="other"), api_pod(uid="c")):
        names.enter(one)
        assert names.predecessor(one) is None
