"""Figures of cgroup v2: names and labels as the Go kubelet gives them on the same machine, for the same pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.machine import upstream
from tests.machine.figures import Series, kinds, paths, series
from tests.machine.node import Node
from tests.machine.pods import FIVE, five_pods, started
from tests.machine.qemu import wait_until

PODS = frozenset(FIVE)
OF_CONTAINERS = ("container_file_descriptors", "container_sockets", "container_ulimits_soft")
DETAILS = (
    *("container_blkio_device_usage_total", "container_cpu_system_seconds_total", "container_cpu_user_seconds_total"),
    *("container_fs_reads_bytes_total", "container_fs_reads_total"),
    *("container_fs_writes_bytes_total", "container_fs_writes_total"),
    *("container_memory_failcnt", "container_memory_kernel_usage", "container_memory_max_usage_bytes"),
    *("container_oom_events_total", "container_spec_cpu_period", "container_spec_cpu_shares"),
    *("container_spec_memory_reservation_limit_bytes", "container_threads", "container_threads_max"),
)


def left_out(one: Series) -> bool:
    """What docs/stats.md names under "Differences from the Go kubelet"."""
    name, _, owner = one
    kind = owner.rpartition("/")[2]
    return (
        name.startswith("machine_nvm_")
        or (name in OF_CONTAINERS and kind != "main")
        or (name == "container_processes" and kind == "pod")
        or (kind == "sandbox" and name in DETAILS)
    )


class Answers(NamedTuple):
    """Of one kubelet."""

    summary: Any
    resource: str
    cadvisor: str


@pytest.fixture(scope="module")
def pair(joined: Node) -> Iterator[tuple[Answers, Answers]]:
    """(ours, the Go kubelet's), one after the other, while the same five pods run."""
    if missing := upstream.missing_requirement():
        pytest.skip(f"NOT COMPARED WITH THE GO KUBELET: {missing}")
    joined.switch_on()
    started(joined.plane, *five_pods())
    ours = ask(joined)
    with upstream.running_instead(joined):
        theirs = ask(joined)
    yield ours, theirs
    joined.delete_pods()


def ask(node: Node) -> Answers:
    def raw(path: str) -> str:
        return node.plane.kubectl("get", "--raw", f"/api/v1/nodes/node-a/proxy/{path}")

    def complete() -> bool:
        # The Go kubelet collects in the background: a group is not complete before its second reading, and at first a
        # container has the runtime's figures, without page faults and pressure.
        pods = {one["podRef"]["name"]: one for one in json.loads(raw("stats/summary"))["pods"]}
        return pods.keys() >= PODS and all(
            "usageNanoCores" in one.get("cpu", {}) and "majorPageFaults" in one["containers"][0].get("memory", {})
            for one in pods.values()
        )

    wait_until(complete, 300, "figures of all pods")
    return Answers(json.loads(raw("stats/summary")), raw("metrics/resource"), raw("metrics/cadvisor"))


def test_the_summary_has_the_same_fields_of_node_pods_and_containers(pair: tuple[Answers, Answers]) -> None:
    ours, theirs = (paths(one.summary, PODS) for one in pair)
    assert (sorted(theirs - ours), sorted(ours - theirs)) == ([], [])


def test_resource_metrics_have_the_same_names_labels_and_types(pair: tuple[Answers, Answers]) -> None:
    ours, theirs = pair
    missing, more = difference(series(ours.resource, PODS), series(theirs.resource, PODS))
    assert (missing, more) == ([], [])
    assert kinds(ours.resource) == kinds(theirs.resource)


def test_container_metrics_have_the_same_names_labels_and_types(pair: tuple[Answers, Answers]) -> None:
    ours, theirs = pair
    wanted = {one for one in series(theirs.cadvisor, PODS) if not left_out(one)}
    missing, more = difference(series(ours.cadvisor, PODS), wanted)
    assert (missing, more) == ([], [])
    both = kinds(ours.cadvisor).keys() & kinds(theirs.cadvisor).keys()
    assert {name: kinds(ours.cadvisor)[name] for name in both} == {name: kinds(theirs.cadvisor)[name] for name in both}


def test_pressure_is_told_of_node_pods_and_containers(pair: tuple[Answers, Answers]) -> None:
    ours, _ = pair
    found = {name for name, _, owner in series(ours.cadvisor, PODS) if owner == "burstable/main"}
    wanted = {
        f"container_pressure_{what}_{how}_seconds_total"
        for what in ("cpu", "memory", "io")
        for how in ("waiting", "stalled")
    }
    assert wanted <= found
    assert {"some", "full"} <= ours.summary["node"]["memory"]["psi"].keys()


def test_values_are_of_one_size(pair: tuple[Answers, Answers]) -> None:
    """Taken minutes apart: sizes alone can be compared, and limits exactly."""
    ours, theirs = (one.summary["node"] for one in pair)
    assert 0.5 < ours["memory"]["workingSetBytes"] / theirs["memory"]["workingSetBytes"] < 2
    assert 0.5 < ours["fs"]["usedBytes"] / theirs["fs"]["usedBytes"] < 2
    assert ours["fs"]["capacityBytes"] == theirs["fs"]["capacityBytes"]
    assert limits(pair[0].cadvisor) == limits(pair[1].cadvisor)


def difference(ours: set[Series], theirs: set[Series]) -> tuple[list[str], list[str]]:
    """(missing, more), as lines for people."""

    def lines(found: set[Series]) -> list[str]:
        return sorted(f"{owner}: {name}{{{','.join(sorted(labels))}}}" for name, labels, owner in found)

    return lines(theirs - ours), lines(ours - theirs)


def limits(page: str) -> dict[str, float]:
    """Values of container_spec_* of the containers of these pods, by the series."""
    found = {}
    for line in page.splitlines():
        of_ours = 'container="main"' in line and any(f'pod="{one}"' in line for one in PODS)
        if of_ours and line.startswith("container_spec_"):
            name, _, value = line.partition("} ")
            found[name] = float(value.split()[0])
    return found
