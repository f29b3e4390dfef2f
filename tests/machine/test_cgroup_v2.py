"""Values in the files of cgroup v2, as the kernel has them while pods run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.fakes.agent import FOR_EVER
from tests.machine.node import Node
from tests.machine.pods import FIVE, SECONDS, five_pods, pod, started
from tests.machine.qemu import wait_until

MI = 2**20


def test_cgroups_of_pods_are_slices_and_those_of_containers_scopes(node: Node) -> None:
    for found in started(node.plane, *five_pods()).values():
        group = node.scope_of(found)
        assert node.cgroup(group, "cgroup.procs")["cgroup.procs"].strip(), group
        unit = node.slice_of(found).rpartition("/")[2]
        assert node.machine.run(f"systemctl is-active {unit}").strip() == "active"


def test_weights_quotas_memory_and_processes_follow_requests_and_limits(node: Node) -> None:
    pods = started(node.plane, *five_pods())
    assert set(pods) == set(FIVE)
    files = ("cpu.weight", "cpu.max", "memory.max", "pids.max")

    def of_pod(name: str) -> tuple[str, ...]:
        found = node.cgroup(node.slice_of(pods[name]), *files)
        return tuple(found[one] for one in files)

    # behaviours.md §16: "v2 `cpu.weight = 1 + ((cpu.shares - 2) * 9999) / 262142`"
    assert of_pod("guaranteed") == ("4", "10000 100000", str(64 * MI), "600")
    assert of_pod("burstable") == ("8", "max 100000", str(96 * MI), "600")
    assert of_pod("burstable-too") == ("12", "max 100000", "max", "600")
    assert of_pod("best-effort") == ("1", "max 100000", "max", "600")
    total = node.cgroup("kubepods.slice/kubepods-burstable.slice", "cpu.weight")["cpu.weight"]
    assert total == "20"  # 500m: 512 shares
    assert node.cgroup("kubepods.slice/kubepods-besteffort.slice", "cpu.weight")["cpu.weight"] == "1"
    container = node.cgroup(node.scope_of(pods["guaranteed"]), *files)
    assert (container["cpu.max"], container["memory.max"]) == ("10000 100000", str(64 * MI))


def test_a_resize_changes_pod_and_container_in_place(node: Node) -> None:
    def both(cpu: str, memory: str) -> dict[str, dict[str, str]]:
        return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}}

    (before,) = started(node.plane, pod("grows", resources=both("100m", "64Mi"))).values()
    patch = {"spec": {"containers": [{"name": "main", "resources": both("300m", "128Mi")}]}}
    node.plane.kubectl("patch", "pod", "grows", "--subresource", "resize", "-p", json.dumps(patch))
    after = node.plane.wait_for(
        "grows",
        lambda found: (
            found and found["status"]["containerStatuses"][0]["resources"].get("limits", {}).get("cpu") == "300m"
        ),
        240,
    )
    assert after is not None
    for path in (node.slice_of(before), node.scope_of(before)):
        found = node.cgroup(path, "cpu.max", "memory.max")
        assert found == {"cpu.max": "30000 100000", "memory.max": str(128 * MI)}
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    # systemd knows the new values, or its next reload would bring the old ones back.
    unit = node.slice_of(before).rpartition("/")[2]
    assert node.machine.run(f"systemctl show --property=MemoryMax --value {unit}").strip() == str(128 * MI)


def test_huge_pages_are_limited_and_can_be_used(node: Node) -> None:
    pages = {"hugepages-2Mi": "4Mi", "memory": "32Mi", "cpu": "50m"}
    volumes = [{"name": "huge", "emptyDir": {"medium": "HugePages"}}]
    wanted = pod("huge", resources={"requests": pages, "limits": pages}, volumes=volumes)
    wanted["spec"]["containers"][0]["volumeMounts"] = [{"name": "huge", "mountPath": "/huge"}]
    found = started(node.plane, wanted, pod("small"))
    # Not the container: containerd 1.6 leaves its limit out when its own cgroup, below system.slice, has no hugetlb.
    assert node.cgroup(node.slice_of(found["huge"]), "hugetlb.2MB.max")["hugetlb.2MB.max"] == str(4 * MI)
    assert node.cgroup(node.slice_of(found["small"]), "hugetlb.2MB.max")["hugetlb.2MB.max"] == "0"
    assert node.plane.kubectl("exec", "huge", "--", "sh", "-c", "grep ' /huge ' /proc/mounts").split()[2] == "hugetlbfs"


def test_an_out_of_memory_kill_ends_the_whole_container(node: Node) -> None:
    (together,) = started(node.plane, pod("together", resources={"limits": {"memory": "64Mi"}})).values()
    assert node.cgroup(node.scope_of(together), "memory.oom.group")["memory.oom.group"] == "1"


def test_without_a_behaviour_for_swap_containers_get_none(node: Node) -> None:
    (without,) = started(node.plane, pod("no-swap", resources={"requests": {"memory": "128Mi"}})).values()
    assert node.cgroup(node.scope_of(without), "memory.swap.max")["memory.swap.max"] == "0"


@pytest.fixture(scope="module")
def on_request(joined: Node) -> Iterator[None]:
    """What a node does only where its configuration says so. For all tests below: a restart takes half a minute."""
    with joined.configured(
        featureGates={"MemoryQoS": True},
        memorySwap={"swapBehavior": "LimitedSwap"},
        singleProcessOOMKill=True,
        podPidsLimit=40,
    ):
        yield


@pytest.mark.usefixtures("on_request")
def test_on_request_an_out_of_memory_kill_ends_one_process(node: Node) -> None:
    (alone,) = started(node.plane, pod("alone", resources={"limits": {"memory": "64Mi"}})).values()
    assert node.cgroup(node.scope_of(alone), "memory.oom.group")["memory.oom.group"] == "0"


@pytest.mark.usefixtures("on_request")
def test_with_memory_qos_requests_are_protected_and_use_is_throttled_below_the_limit(node: Node) -> None:
    resources = {"requests": {"cpu": "50m", "memory": "40Mi"}, "limits": {"memory": "80Mi"}}
    (found,) = started(node.plane, pod("protected", resources=resources)).values()
    container = node.cgroup(node.scope_of(found), "memory.min", "memory.high")
    # KEP-2570: memory.high = floor((request + 0.9 * (limit - request)) / page) * page
    assert container == {"memory.min": str(40 * MI), "memory.high": str(76 * MI)}
    assert node.cgroup(node.slice_of(found), "memory.min")["memory.min"] == str(40 * MI)
    burstable = "kubepods.slice/kubepods-burstable.slice"
    wait_until(
        lambda: node.cgroup(burstable, "memory.min")["memory.min"] == str(40 * MI), 120, "the class's memory.min"
    )
    node.machine.run("systemctl daemon-reload", seconds=300)
    assert node.cgroup(node.slice_of(found), "memory.min")["memory.min"] == str(40 * MI)


@pytest.mark.usefixtures("on_request")
def test_limited_swap_is_the_share_of_a_burstable_pods_request(node: Node) -> None:
    pods = [
        pod("part", resources={"requests": {"memory": "128Mi"}, "limits": {"memory": "256Mi"}}),
        pod("whole", resources=FIVE["guaranteed"]),
        pod("none"),
    ]
    found = started(node.plane, *pods)
    swap = {name: node.cgroup(node.scope_of(one), "memory.swap.max")["memory.swap.max"] for name, one in found.items()}
    machine = dict(line.split(":") for line in node.machine.read("/proc/meminfo").splitlines())
    memory, total = (int(machine[name].split()[0]) * 1024 for name in ("MemTotal", "SwapTotal"))
    # KEP-2400: (request / memory of the node) * swap of the node
    page = 4096
    assert abs(int(swap["part"]) - 128 * MI / memory * total) <= page
    assert (swap["whole"], swap["none"]) == ("0", "0")


@pytest.mark.usefixtures("on_request")
def test_a_container_that_forks_without_end_meets_the_limit_of_its_pod(node: Node) -> None:
    bomb = "i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; " + FOR_EVER
    node.plane.apply(pod("forks", bomb))
    found = node.plane.wait_for("forks", lambda one: one and one["status"].get("containerStatuses"), SECONDS)
    assert found is not None
    group = node.slice_of(found)
    assert node.cgroup(group, "pids.max")["pids.max"] == "40"
    # The kernel counts a refused fork in the container's cgroup, which goes with it; the slice keeps its peak.
    wait_until(lambda: node.cgroup(group, "pids.peak")["pids.peak"] == "40", 120, "forty processes")
