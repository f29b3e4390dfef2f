"""Deployments and DaemonSets on one machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.box.world import Machine, workload


def test_a_deployment_has_as_many_pods_as_replicas_with_stable_names() -> None:
    machine = Machine(workload("Deployment", replicas=3))
    machine.settle()
    assert machine.names == ["web-0", "web-1", "web-2"]
    assert [(row.ready, row.wanted, row.settled) for row in machine.last.rows] == [(3, 3, True)]  # type: ignore[union-attr]
    started = list(machine.started)
    machine.settle()
    assert machine.started == started


def test_fewer_replicas_end_the_highest_numbers() -> None:
    machine = Machine(workload("Deployment", replicas=3))
    machine.settle()
    machine.documents = (workload("Deployment", replicas=1),)
    machine.settle()
    assert machine.names == ["web-0"]


def test_a_rolling_update_has_the_new_pod_ready_before_an_old_one_ends() -> None:
    machine = Machine(workload("Deployment", replicas=2))
    machine.settle()
    machine.documents = (workload("Deployment", replicas=2, image="two"),)
    seen = machine.settle()
    assert min(ready for _, ready in seen) == 2
    assert max(count for count, _ in seen) == 3
    assert {machine.image(name) for name in machine.names} == {"two"}
    assert len(machine.names) == 2


def test_a_new_pod_that_does_not_become_ready_leaves_the_old_ones() -> None:
    machine = Machine(workload("Deployment", replicas=2))
    machine.settle()
    machine.documents = (workload("Deployment", replicas=2, image="two"),)
    machine.slow = {"web-2"}
    machine.settle()
    assert machine.names == ["web-0", "web-1", "web-2"]
    assert [machine.image(name) for name in machine.names] == ["one", "one", "two"]
    assert not machine.last.rows[0].settled  # type: ignore[union-attr]


def test_min_ready_seconds_count_before_an_old_pod_ends() -> None:
    machine = Machine(workload("Deployment", replicas=1, minReadySeconds=30))
    machine.settle()
    machine.wait(60)
    machine.documents = (workload("Deployment", image="two", minReadySeconds=30),)
    machine.settle()
    assert machine.names == ["web-0", "web-1"]
    machine.wait(31)
    machine.settle()
    assert machine.names == ["web-1"]


def test_recreate_ends_all_old_pods_before_a_new_one_starts() -> None:
    machine = Machine(workload("Deployment", replicas=2, strategy={"type": "Recreate"}))
    machine.settle()
    machine.keeps_ending = True
    machine.documents = (workload("Deployment", replicas=2, image="two", strategy={"type": "Recreate"}),)
    machine.look()
    machine.look()
    assert machine.ending == {("shop", "web-0"), ("shop", "web-1")}
    assert machine.started == ["web-0", "web-1"]
    machine.keeps_ending = False
    machine.ended()
    machine.settle()
    assert [machine.image(name) for name in machine.names] == ["two", "two"]


def test_pods_with_a_host_port_are_updated_one_after_the_other() -> None:
    pod = {"containers": [{"name": "main", "image": "one", "ports": [{"containerPort": 80, "hostPort": 8080}]}]}
    machine = Machine(workload("Deployment", pod=pod))
    machine.settle()
    changed = {"containers": [{**pod["containers"][0], "image": "two"}]}
    machine.documents = (workload("Deployment", pod=changed),)
    seen = machine.settle()
    assert max(count for count, _ in seen) == 1
    assert machine.image(machine.names[0]) == "two"


def test_a_paused_deployment_keeps_its_revision_and_its_number() -> None:
    machine = Machine(workload("Deployment", replicas=2))
    machine.settle()
    machine.documents = (workload("Deployment", replicas=2, image="two", paused=True),)
    machine.settle()
    assert [machine.image(name) for name in machine.names] == ["one", "one"]


def test_a_daemon_set_is_one_pod_of_its_own_name() -> None:
    machine = Machine(workload("DaemonSet"))
    machine.settle()
    assert machine.names == ["web"]
    machine.documents = (workload("DaemonSet", image="two"),)
    machine.settle()
    assert machine.image("web") == "two"


def test_a_daemon_set_on_delete_keeps_its_pod() -> None:
    machine = Machine(workload("DaemonSet", updateStrategy={"type": "OnDelete"}))
    machine.settle()
    machine.documents = (workload("DaemonSet", image="two", updateStrategy={"type": "OnDelete"}),)
    machine.settle()
    assert machine.image("web") == "one"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"replicas": "two"}, "spec"),
        ({"replicas": -1}, "spec"),
        ({"replicas": 100_000}, "spec"),
        (
            {"strategy": {"type": "Blue"}},
            'spec.strategy.type: Unsupported value: "Blue"; allowed: RollingUpdate, Recreate',
        ),
        ({"strategy": {"rollingUpdate": {"maxSurge": "many"}}}, "want a number or a percentage"),
    ],
)
def test_a_broken_deployment_is_a_finding_and_its_pods_go_on(spec: dict[str, Any], said: str) -> None:
    machine = Machine(workload("Deployment", replicas=2))
    machine.settle()
    machine.documents = (workload("Deployment", **spec),)
    machine.settle()
    assert machine.names == ["web-0", "web-1"]
    (finding,) = machine.last.findings  # type: ignore[union-attr]
    assert finding.broken
    assert said in finding.text
    assert finding.place == "shop.yaml:1"


def test_no_share_of_an_update_is_both_none() -> None:
    none = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
    machine = Machine(workload("Deployment", strategy=none))
    machine.settle()
    machine.documents = (workload("Deployment", image="two", strategy=none),)
    machine.settle()
    assert machine.image(machine.names[0]) == "two"
