"""Facts about the static memory policy that the tables of the Go kubelet's answers do not show."""

from __future__ import annotations

import pytest

from glasslet.exchange.numa import NUMAHint
from glasslet.host.topology import NUMANode
from glasslet.managers.memory_policy import MemoryRefused, StaticMemoryPolicy, allocatable_blocks
from glasslet.managers.memory_state import Block, MemoryState
from glasslet.managers.needs import ContainerNeeds, PodNeeds

ANY = NUMAHint(None, True)


def _policy(*memory: int) -> StaticMemoryPolicy:
    return StaticMemoryPolicy([NUMANode(id=at, memory=one) for at, one in enumerate(memory)], {0: {"memory": 100}})


def _pod(amount: int, uid: str = "a", resource: str = "memory") -> PodNeeds:
    return PodNeeds(uid=uid, containers=(ContainerNeeds(name="main", memory={resource: amount}),))


def _with_pod(policy: StaticMemoryPolicy, state: MemoryState, pod: PodNeeds) -> MemoryState:
    return policy.allocate(state, pod, pod.containers[0], ANY).state


def test_huge_pages_that_the_machine_lacks_are_refused() -> None:
    policy, pod = _policy(1000), _pod(5, resource="hugepages-1Gi")
    with pytest.raises(MemoryRefused, match="no NUMA nodes with enough memory"):
        policy.allocate(policy.first(), pod, pod.containers[0], ANY)


def test_more_is_reserved_than_there_is() -> None:
    # The Go kubelet counts on, past zero, to a number without end.
    assert allocatable_blocks(_policy(50).first()) == []


def test_another_amount_of_memory_after_a_boot_keeps_what_fits() -> None:
    state = _policy(1000, 1000).first()
    state = _with_pod(_policy(1000, 1000), state, _pod(600))
    state = _with_pod(_policy(1000, 1000), state, _pod(900, "b"))
    smaller = _policy(990, 850)
    mended = smaller.mended(state)
    assert set(mended.entries) == {"a"}
    assert mended.machine[0].tables["memory"].free == 290
    assert not smaller.same(mended, state)
    assert smaller.same(smaller.mended(mended), mended)


def test_entries_of_nodes_that_are_gone_are_dropped() -> None:
    entries = {"a": {"main": (Block(nodes=(7,), resource="memory", size=1),)}}
    assert _policy(1000).mended(MemoryState(entries=entries)).entries == {}


def test_freed_memory_comes_back_and_the_group_is_over() -> None:
    policy = _policy(1000, 1000)
    state = _with_pod(policy, policy.first(), _pod(1500))
    assert state.machine[1].group == (0, 1)
    assert state.without(lambda uid, name: True) == policy.first()
