"""The pods that the servers show: desired pods with the status of their workers, by list and by name alike."""

from __future__ import annotations

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_status import ContainerState, ContainerStateRunning, ContainerStatus, PodStatus
from glasslet.runtime.model import ObservedPod
from glasslet.server.node_pods import NodePods
from tests.builders.observed import exited_container, observed_container, observed_pod
from tests.builders.pod import api_pod, pod

RUNNING = PodStatus(
    phase="Running",
    container_statuses=(
        ContainerStatus(
            name="main",
            image="busybox",
            image_id="",
            ready=True,
            restart_count=0,
            state=ContainerState(running=ContainerStateRunning()),
        ),
    ),
)

Statuses = dict[str, PodStatus]


class Kept:
    """A list with the method of its owner."""

    def __init__(self, *pods: Pod) -> None:
        self.pods = pods

    def all(self) -> list[Pod]:
        return list(self.pods)


class Observed:
    """Observed pods."""

    def __init__(self, *pods: ObservedPod) -> None:
        self.pods = pods

    def all(self) -> list[ObservedPod]:
        return list(self.pods)


def node_pods(
    *desired: Pod, statuses: dict[str, PodStatus] | None = None, observed: Observed | None = None
) -> NodePods:
    known = statuses or {}
    return NodePods(desired=Kept(*desired), observed=observed or Observed(), status_of=lambda uid: known.get(uid))


def test_a_pod_by_name_is_the_pod_of_the_list() -> None:
    view = node_pods(pod(), statuses={PodUID(pod().metadata.uid): RUNNING})
    assert view.pod("default", "web") == view.pods()[0]
    assert view.pods()[0].status == RUNNING


def test_a_pod_that_no_source_wants_any_more_is_neither_listed_nor_found() -> None:
    view = node_pods(statuses={PodUID(pod().metadata.uid): RUNNING})
    assert list(view.pods()) == []
    assert view.pod("default", "web") is None


def test_of_two_pods_with_one_name_the_running_one_is_found() -> None:
    view = node_pods(api_pod(uid="waits"), pod(uid="runs"), statuses={"runs": RUNNING})
    found = view.pod("default", "web")
    assert found is not None
    assert found.metadata.uid == "runs"


def test_running_pods_are_those_with_a_running_container() -> None:
    runs, ended = observed_pod(observed_container()), observed_pod(exited_container(), uid=PodUID("uid-2"))
    assert list(node_pods(observed=Observed(runs, ended)).running_pods()) == [runs]
