"""Pods that the node refuses: the sentence names the one thing that does not fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import NODE
from tests.troubles.table import Plain, Trouble, chosen, each_chosen
from tests.troubles.world import ClusterWorld, bound_pod

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

AREA = "Rejections"


def refused(name: str, made: str, *says: str, quick: bool = False, **spec: Any) -> Trouble:
    """A pod with these fields in its spec, which the node rejects."""
    return Trouble(name=name, made=made, rule=Rule.REJECTED, says=says, pod=_with(name, {}, spec), quick=quick)


def asks(name: str, made: str, *says: str, **resources: str) -> Trouble:
    """A pod that asks for more than there is."""
    container = {"resources": {"requests": resources, "limits": resources}}
    return Trouble(name=name, made=made, rule=Rule.REJECTED, says=says, pod=_with(name, container, {}))


def _with(name: str, container: Plain, spec: Plain) -> Callable[[Any], Plain]:
    def manifest(_: Any) -> Plain:
        pod = bound_pod(name, **spec)
        pod["spec"]["containers"][0] |= container
        return pod

    return manifest


PORT = {"ports": [{"containerPort": 80, "hostPort": 31999}]}
TROUBLES = (
    refused("no-label", "a nodeSelector asks for a label that the node lacks", "disk", "NodeAffinity",
            nodeSelector={"disk": "fast"}),
    refused("no-affinity", "a node affinity asks for another zone", "zone", "NodeAffinity",
            affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]}}}),
    refused("windows", "the pod is for another operating system", "the pod is for windows, the node runs linux",
            os={"name": "windows"}),
    refused("bad-sysctl", "a sysctl that this node does not allow", "kernel.msgmax",
            securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "9000"}]}) ,
    asks("too-much-cpu", "more CPU than is free", "of cpu are asked", "are free", cpu="1k"),
    asks("too-much-memory", "more memory than is free", "of memory are asked", "are free", memory="100Ti"),
    Trouble(
        name="port-taken",
        made="the host port is taken by another pod",
        rule=Rule.REJECTED,
        says=("host port 31999", "default/port-holder"),
        pod=_with("port-taken", PORT, {}),
    ),
    Trouble(
        name="no-toleration",
        made="the node has a NoExecute taint that the pod does not tolerate",
        rule=Rule.REJECTED,
        says=("taint", "gone=true:NoExecute"),
        pod=_with("no-toleration", {}, {}),
    ),
)  # fmt: skip


def prepare(world: ClusterWorld) -> None:
    """A pod that holds the port, and then a taint on the node that it tolerates."""
    every = {"tolerations": [{"operator": "Exists"}]}
    world.plane.apply(_with("port-holder", PORT, every)(world))
    until = time.monotonic() + 60
    while (
        not (world.ask("/pods/default/port-holder/why") or {})
        .get("sentence", "")
        .startswith("default/port-holder is fine")
    ):
        assert time.monotonic() < until
        time.sleep(0.2)


TAINTED = TROUBLES[-1]


@pytest.fixture(scope="module")
def world(cluster: ClusterWorld) -> ClusterWorld:
    prepare(cluster)
    cluster.put(*(trouble for trouble in chosen(TROUBLES) if trouble is not TAINTED))
    return cluster


@each_chosen(TROUBLES)
def test_a_rejected_pod_gets_the_one_thing_that_did_not_fit(world: ClusterWorld, trouble: Trouble) -> None:
    if trouble is TAINTED:
        # The taint comes last: a controller deletes the other pods for it.
        world.plane.kubectl("taint", "nodes", NODE, "gone=true:NoExecute")
        time.sleep(1)
        world.put(trouble)
    world.shows(trouble)
