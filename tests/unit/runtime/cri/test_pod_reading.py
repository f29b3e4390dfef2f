"""Joining lists to pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from glasslet.api.object import ContainerID, SandboxID
from glasslet.runtime.cri.labels import POD_NAME, POD_NAMESPACE, POD_UID
from glasslet.runtime.cri.pod_reading import join_pods, needs_status
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedSandbox

START = datetime(2026, 1, 1, tzinfo=UTC)


def labels(uid: str) -> dict[str, str]:
    return {POD_UID: uid, POD_NAME: f"pod-{uid}", POD_NAMESPACE: "default"}


def box(name: str, *, age: int = 0, ready: bool = True, uid: str = "u", attempt: int = 0) -> ObservedSandbox:
    return ObservedSandbox(
        id=SandboxID(name),
        attempt=attempt,
        ready=ready,
        created_at=START - timedelta(seconds=age),
        labels=labels(uid) if uid else {},
    )


def container(name: str, *, age: int = 0, attempt: int = 0, uid: str = "u") -> ObservedContainer:
    return ObservedContainer(
        id=ContainerID(name),
        name="main",
        attempt=attempt,
        phase=ContainerPhase.RUNNING,
        sandbox_id=SandboxID("s"),
        created_at=START - timedelta(seconds=age),
        labels=labels(uid) if uid else {},
    )


def test_parts_are_newest_first() -> None:
    (pod,) = join_pods([box("old", age=9), box("new")], [container("a", age=9), container("b")], observed_at=1.5)

    assert [s.id for s in pod.sandboxes] == ["new", "old"]
    assert [c.id for c in pod.containers] == ["b", "a"]
    assert (pod.name, pod.namespace, pod.observed_at) == ("pod-u", "default", 1.5)


def test_the_attempt_decides_where_births_are_equal() -> None:
    (pod,) = join_pods([], [container("first", attempt=1), container("second", attempt=2)], observed_at=0)

    assert [c.id for c in pod.containers] == ["second", "first"]


def test_containers_without_a_sandbox_are_still_a_pod() -> None:
    (pod,) = join_pods([], [container("c")], observed_at=0)

    assert (pod.uid, pod.name, pod.sandboxes) == ("u", "pod-u", ())


def test_each_pod_has_its_own_parts() -> None:
    pods = join_pods([box("s1", uid="1"), box("s2", uid="2")], [container("c2", uid="2")], observed_at=0)

    assert {p.uid: (len(p.sandboxes), len(p.containers)) for p in pods} == {"1": (1, 0), "2": (1, 1)}


def test_what_has_no_pod_uid_is_nobodys() -> None:
    assert join_pods([box("foreign", uid="")], [container("foreign", uid="")], observed_at=0) == ()


def test_only_the_newest_and_ready_sandboxes_are_asked_about() -> None:
    boxes = (box("new", ready=False), box("older", age=1, ready=True), box("oldest", age=2, ready=False))

    assert [s.id for s in needs_status(boxes)] == ["new", "older"]
