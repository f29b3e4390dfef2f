"""Which mirrors are made and deleted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.meta import ObjectMeta
from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.api.pod_status import PodStatus
from glasslet.mirror.plan import Create, Delete, FullName, mirror_of, plan
from tests.builders.pod import LONG_AGO, pod

NODE = Node(metadata=ObjectMeta(name="n1", uid="node-uid"))
STATIC = replace(pod(annotations={"kubernetes.io/config.hash": "abc"}), status=PodStatus(phase="Pending"))
NAME: FullName = ("default", "web")
MIRROR = mirror_of(STATIC, NODE)


def changed(mirror: Pod, **meta: Any) -> Pod:
    return replace(mirror, metadata=replace(mirror.metadata, **meta))


OLD = changed(MIRROR, annotations={"kubernetes.io/config.mirror": "older"})
DYING = changed(MIRROR, deletion_timestamp=LONG_AGO)
DELETED_NODE = replace(NODE, metadata=replace(NODE.metadata, deletion_timestamp=LONG_AGO))


@pytest.mark.parametrize(
    ("static", "mirrors", "node", "stopping", "complete", "steps"),
    [
        pytest.param([STATIC], [], NODE, set(), True, [Create(MIRROR)], id="missing"),
        pytest.param([STATIC], [MIRROR], NODE, set(), True, [], id="right"),
        pytest.param([STATIC], [OLD], NODE, set(), True, [Delete(OLD), Create(MIRROR)], id="of an older pod"),
        pytest.param([STATIC], [DYING], NODE, set(), True, [Delete(DYING), Create(MIRROR)], id="being deleted"),
        pytest.param([], [MIRROR], NODE, set(), True, [Delete(MIRROR)], id="left over"),
        pytest.param([], [MIRROR], NODE, set(), False, [], id="perhaps wanted by a source that has not told"),
        pytest.param([], [MIRROR], NODE, {NAME}, True, [], id="its pod is being stopped"),
        pytest.param([STATIC], [OLD], NODE, {NAME}, True, [], id="the older pod is being stopped"),
        pytest.param([STATIC], [], NODE, {NAME}, True, [], id="missing while the older pod is being stopped"),
        pytest.param([STATIC], [], None, set(), True, [], id="no node"),
        pytest.param([STATIC], [], DELETED_NODE, set(), True, [], id="the node goes"),
        pytest.param([STATIC], [], Node(metadata=ObjectMeta(name="n1")), set(), True, [], id="node not registered"),
    ],
)
def test_what_is_done(
    static: list[Pod], mirrors: list[Pod], node: Node | None, stopping: set[FullName], complete: bool, steps: list[Any]
) -> None:
    assert list(plan(static, mirrors, node=node, stopping=stopping, complete=complete)) == steps


def test_mirror_carries_no_identity_of_the_static_pod() -> None:
    assert MIRROR.metadata.uid == ""
    assert MIRROR.metadata.annotations["kubernetes.io/config.mirror"] == "abc"
    assert MIRROR.status == PodStatus()
    assert MIRROR.spec == STATIC.spec
