"""What happened between two snapshots."""

from __future__ import annotations

import pytest

from glasslet.runtime.model import ContainerPhase, ObservedPod
from glasslet.runtime.observed.diff import ChangeKind, ObservedChange, changes
from tests.builders.observed import exited_container, observed_container, observed_pod, observed_sandbox

HEALTHY = observed_pod(observed_container())


@pytest.mark.parametrize(
    ("old", "new", "kind", "words"),
    [
        pytest.param(
            observed_pod(), HEALTHY, ChangeKind.CONTAINER_STARTED, ("absent", "running"), id="a new running one started"
        ),
        pytest.param(
            observed_pod(observed_container(phase=ContainerPhase.CREATED)),
            HEALTHY,
            ChangeKind.CONTAINER_STARTED,
            ("created", "running"),
            id="created, then running: started",
        ),
        pytest.param(
            HEALTHY,
            observed_pod(exited_container(code=137)),
            ChangeKind.CONTAINER_DIED,
            ("running", "exited 137"),
            id="running, then exited: died",
        ),
        pytest.param(
            observed_pod(),
            observed_pod(exited_container(code=0)),
            ChangeKind.CONTAINER_DIED,
            ("absent", "exited 0"),
            id="a whole life between two reads is a death",
        ),
        pytest.param(
            HEALTHY,
            observed_pod(),
            ChangeKind.CONTAINER_REMOVED,
            ("running", "absent"),
            id="not there any more: removed",
        ),
        pytest.param(
            HEALTHY,
            observed_pod(observed_container(phase=ContainerPhase.UNKNOWN)),
            ChangeKind.CONTAINER_CHANGED,
            ("running", "unknown"),
            id="a state nobody knows is a change",
        ),
        pytest.param(
            HEALTHY,
            observed_pod(observed_container(image_ref="sha256:2")),
            ChangeKind.CONTAINER_CHANGED,
            ("running", "running"),
            id="other details are a change",
        ),
        pytest.param(
            HEALTHY,
            observed_pod(observed_container(), sandboxes=(observed_sandbox(ready=False),)),
            ChangeKind.SANDBOX_DIED,
            ("ready", "not ready"),
            id="a sandbox that is not ready any more died",
        ),
        pytest.param(
            HEALTHY,
            observed_pod(observed_container(), sandboxes=()),
            ChangeKind.SANDBOX_REMOVED,
            ("ready", "absent"),
            id="a sandbox that is gone was removed",
        ),
        pytest.param(
            observed_pod(observed_container(), sandboxes=()),
            HEALTHY,
            ChangeKind.SANDBOX_READY,
            ("absent", "ready"),
            id="a new ready sandbox",
        ),
        pytest.param(
            HEALTHY,
            observed_pod(observed_container(), sandboxes=(observed_sandbox(ips=("10.0.0.2",)),)),
            ChangeKind.SANDBOX_CHANGED,
            ("ready", "ready"),
            id="another address is a change",
        ),
    ],
)
def test_one_difference_is_one_change(
    old: ObservedPod, new: ObservedPod, kind: ChangeKind, words: tuple[str, str]
) -> None:
    found = changes(old, new)
    assert [(c.kind, (c.old, c.new)) for c in found] == [(kind, words)]


def test_equal_snapshots_differ_in_nothing() -> None:
    assert changes(HEALTHY, observed_pod(observed_container(), observed_at=5.0)) == ()


def test_an_unknown_pod_that_stays_unknown_has_no_changes() -> None:
    assert changes(None, None) == ()


def test_a_restart_reads_as_it_happened_death_before_start() -> None:
    found = changes(HEALTHY, observed_pod(observed_container(attempt=1), exited_container(code=1)))
    assert [(c.id, c.kind) for c in found] == [
        ("main-0", ChangeKind.CONTAINER_DIED),
        ("main-1", ChangeKind.CONTAINER_STARTED),
    ]


def test_a_pod_that_vanished_lost_its_sandbox_and_containers() -> None:
    assert {c.kind for c in changes(HEALTHY, None)} == {ChangeKind.CONTAINER_REMOVED, ChangeKind.SANDBOX_REMOVED}


def test_a_change_names_its_subject() -> None:
    assert ObservedChange(kind=ChangeKind.CONTAINER_DIED, id="x", container="main").subject == "container main"
    assert ObservedChange(kind=ChangeKind.SANDBOX_DIED, id="x").subject == "sandbox"
