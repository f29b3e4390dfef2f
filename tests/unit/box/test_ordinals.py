"""StatefulSets on one machine."""

from __future__ import annotations

from tests.unit.box.world import Machine, workload

CLAIM = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]


def test_pods_start_in_order_each_after_the_one_before_is_ready() -> None:
    machine = Machine(workload("StatefulSet", replicas=3))
    machine.slow = {"web-1"}
    machine.settle()
    assert machine.names == ["web-0", "web-1"]
    machine.slow = set()
    machine.settle()
    assert machine.started == ["web-0", "web-1", "web-2"]


def test_parallel_pods_start_at_once() -> None:
    machine = Machine(workload("StatefulSet", replicas=3, podManagementPolicy="Parallel"))
    machine.look()
    assert machine.names == ["web-0", "web-1", "web-2"]


def test_the_highest_pod_ends_first_and_is_gone_before_the_next() -> None:
    machine = Machine(workload("StatefulSet", replicas=3))
    machine.settle()
    machine.keeps_ending = True
    machine.documents = (workload("StatefulSet", replicas=1),)
    machine.look()
    machine.look()
    assert machine.ending == {("shop", "web-2")}
    machine.ended()
    machine.look()
    assert machine.ending == {("shop", "web-1")}


def test_an_update_goes_from_the_highest_pod_down_one_at_a_time() -> None:
    machine = Machine(workload("StatefulSet", replicas=3))
    machine.settle()
    machine.started.clear()
    machine.documents = (workload("StatefulSet", replicas=3, image="two"),)
    seen = machine.settle()
    assert machine.started == ["web-2", "web-1", "web-0"]
    assert min(ready for _, ready in seen) >= 2


def test_a_partition_leaves_the_lower_pods() -> None:
    machine = Machine(workload("StatefulSet", replicas=2))
    machine.settle()
    partition = {"rollingUpdate": {"partition": 1}}
    machine.documents = (workload("StatefulSet", replicas=2, image="two", updateStrategy=partition),)
    machine.settle()
    assert [machine.image(name) for name in machine.names] == ["one", "two"]
    assert machine.last.rows[0].settled  # type: ignore[union-attr]


def test_each_pod_has_a_claim_of_its_own_that_is_bound_to_a_folder() -> None:
    machine = Machine(workload("StatefulSet", replicas=2, volumeClaimTemplates=CLAIM, serviceName="db"))
    machine.settle()
    assert [str(folder) for folder in machine.last.folders] == [  # type: ignore[union-attr]
        "/state/claims/shop/data-web-0",
        "/state/claims/shop/data-web-1",
    ]
    spec = machine.bodies["shop", "web-1"]["spec"]
    assert spec["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}]
    assert (spec["hostname"], spec["subdomain"]) == ("web-1", "db")
    claim = machine.last.objects["api/v1/namespaces/shop/persistentvolumeclaims/data-web-1"]  # type: ignore[union-attr]
    assert claim["status"]["phase"] == "Bound"
