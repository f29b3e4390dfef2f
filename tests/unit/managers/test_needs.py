"""Which containers need CPUs and memory of their own."""

from __future__ import annotations

from glasslet.api.container import Container, ResourceRequirements
from glasslet.api.meta import ObjectMeta
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.pod_status import ContainerStatus, PodStatus
from glasslet.api.quantity import Quantity
from glasslet.managers.needs import PodNeeds, pod_needs

MI = 1 << 20


def _container(name: str, cpu: str, memory: int = 8, policy: str | None = None) -> Container:
    amounts = {"cpu": Quantity.parse(cpu), "memory": Quantity(memory * MI)}
    return Container(
        name=name, resources=ResourceRequirements(requests=amounts, limits=amounts), restart_policy=policy or ""
    )


def _needs(pod: Pod) -> PodNeeds:
    return pod_needs(pod, guaranteed=True, pod_level=False, in_place=True)


def _pod(*init: Container, status: PodStatus = PodStatus()) -> Pod:  # noqa: B008
    spec = PodSpec(init_containers=init, containers=(_container("main", "2"), _container("part", "1500m")))
    return Pod(metadata=ObjectMeta(name="p", namespace="default", uid="u"), spec=spec, status=status)


def test_only_whole_cpus_are_given_out() -> None:
    assert [(one.name, one.cpus) for one in _needs(_pod()).containers] == [("main", 2), ("part", 0)]


def test_nothing_without_the_class_or_with_resources_of_the_pod() -> None:
    for guaranteed, pod_level in ((False, False), (True, True)):
        assert pod_needs(_pod(), guaranteed=guaranteed, pod_level=pod_level, in_place=True).containers == ()


def test_the_pod_has_the_most_that_it_needs_at_once() -> None:
    pod = _pod(_container("one", "4", 20), _container("side", "1", 4, "Always"), _container("two", "4", 20))
    needs = _needs(pod)
    # "max(largest plain init container plus the sidecars before it, all sidecars plus regular containers)"
    assert needs.cpus() == 5
    assert needs.memory() == {"memory": 24 * MI}
    assert [one.role for one in needs.containers] == ["init", "sidecar", "init", "main", "main"]


def test_what_was_granted_counts() -> None:
    granted = ContainerStatus(
        name="main", ready=True, restart_count=0, image="", image_id="", allocated_resources={"cpu": Quantity(3)}
    )
    pod = _pod(status=PodStatus(container_statuses=(granted,)))
    assert _needs(pod).containers[0].cpus == 3
    assert pod_needs(pod, guaranteed=True, pod_level=False, in_place=False).containers[0].cpus == 2
