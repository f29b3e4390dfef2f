"""Why the node refused a pod."""

from __future__ import annotations

from datetime import timedelta

import pytest

from glasslet.api.pod_status import (
    PodStatus,
)
from glasslet.exchange.numa import NUMAHint
from glasslet.glass.verdicts.pod_rules import pod_verdict
from glasslet.glass.verdicts.rejections import MISFIT
from glasslet.managers.misfit import topology_misfit
from glasslet.record.events import Decided
from tests.builders.record import BASE, START, record
from tests.builders.verdicts import (
    evidence,
    situation,
    status,
)


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        (
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 2000, used: 500, capacity: 1000",
            "2000m of cpu are asked, 500m are free (500m of 1000m are requested by other pods)",
        ),
        (
            "OutOfmemory",
            "Node didn't have enough resource: memory, requested: 2147483648, used: 536870912, capacity: 1073741824",
            "2.0 GiB of memory are asked, 512.0 MiB are free (512.0 MiB of 1.0 GiB are requested by other pods)",
        ),
        (
            "OutOfpods",
            "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110",
            "all 110 places for pods are taken",
        ),
        ("SysctlForbidden", 'forbidden sysctl: "kernel.x" not allowed', 'forbidden sysctl: "kernel.x" not allowed'),
    ],
)
def test_a_rejection_says_what_did_not_fit(reason: str, message: str, words: str) -> None:
    refused = PodStatus(phase="Failed", reason=reason, message=f"Pod was rejected: {message}")
    verdict = pod_verdict(situation(now=refused, record=record(Decided(BASE + 9, "rejected"))))
    assert verdict.sentence.startswith(f"default/web was rejected by this node: {words} ({reason})")
    assert (verdict.rule, verdict.since) == ("rejected", START + timedelta(seconds=9))
    assert evidence(situation(now=refused))["said"] == message
    assert "glasslet logs" not in verdict.next_step


def test_a_rejection_names_what_the_record_holds_of_the_misfit() -> None:
    message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    refused = PodStatus(phase="Failed", reason="NodePorts", message=f"Pod was rejected: {message}")
    held_by = "host port 80/TCP is held by pod default/other"
    noted = Decided(BASE + 8, "does not fit", "", (("because", held_by),))
    verdict = pod_verdict(situation(now=refused, record=record(noted, Decided(BASE + 9, "rejected"))))
    assert verdict.sentence.startswith(f"default/web was rejected by this node: {held_by} (NodePorts)")


def test_a_pod_that_no_numa_node_can_hold_is_told_by_node() -> None:
    refused = PodStatus(
        phase="Failed",
        reason="TopologyAffinityError",
        message="Pod was rejected: Resources cannot be allocated with Topology locality",
    )
    said = [{"cpu": [NUMAHint(3, False)]}, {"memory": [NUMAHint(1, True), NUMAHint(2, True)]}]
    why = topology_misfit("single-numa-node", said, {"cpu": {0: "2", 1: "3"}})
    noted = Decided(BASE + 8, MISFIT, "", (("because", why),))
    verdict = pod_verdict(situation(now=refused, record=record(noted, Decided(BASE + 9, "rejected"))))
    assert verdict.sentence.startswith(
        "default/web was rejected by this node: topology policy single-numa-node finds no NUMA nodes for all of it: "
        "cpu fits only on NUMA nodes 0, 1, more nodes than it needs (free: 2 on node 0, 3 on node 1); "
        "memory fits on NUMA node 0 or NUMA node 1 (TopologyAffinityError)"
    )
    assert "glasslet node resources" in verdict.next_step


def test_a_pod_that_a_node_under_pressure_refuses_is_told_what_is_low() -> None:
    message = "Pod was rejected: The node had condition: [MemoryPressure DiskPressure]. "
    it = situation(now=status(phase="Failed", reason="Evicted", message=message), lifecycle="finished")
    verdict = pod_verdict(it)
    assert "the node is under pressure: it is low on memory and disk space or inodes (Evicted)" in verdict.sentence
    assert "glasslet why node" in verdict.next_step
