"""Deviations of eviction that are off unless they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.eviction.options import CACHE_IS_FREE, WAITS, EvictionOptions, eviction_options, with_free_cache
from glasslet.eviction.signals import Signal, observe
from glasslet.host.cgroups.discovery import FreeMemory, free_memory
from glasslet.host.cgroups.v1 import CgroupV1
from tests.builders.eviction import GIB, MIB, summary


def test_both_are_off_unless_they_are_asked_for() -> None:
    assert eviction_options({}) == EvictionOptions(cache_is_free=False, waits=False)
    assert eviction_options({CACHE_IS_FREE: "True", WAITS: "true"}) == EvictionOptions(cache_is_free=True, waits=True)


@pytest.mark.parametrize("name", [CACHE_IS_FREE, WAITS])
def test_another_word_is_refused_with_the_variable_and_what_is_allowed(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}='yes': want true or false"):
        eviction_options({name: "yes"})


def available(free: FreeMemory) -> tuple[int, int, int]:
    """Of node and pods, and the node's capacity: of 8 GiB 4 are free, of the pods' 7 GiB 3."""
    seen = observe(with_free_cache(summary(free=4 * GIB, free_of_pods=3 * GIB), free))
    node = seen[Signal.MEMORY]
    return node.available, seen[Signal.ALLOCATABLE_MEMORY].available, node.capacity


def test_the_kernels_word_counts_for_the_node_and_active_cache_for_the_pods() -> None:
    assert available(FreeMemory(node=6 * GIB, pods_cache=GIB)) == (6 * GIB, 4 * GIB, 8 * GIB)


def test_more_than_there_is_cannot_be_free() -> None:
    assert available(FreeMemory(node=99 * GIB, pods_cache=99 * GIB)) == (8 * GIB, 7 * GIB, 8 * GIB)


def test_what_is_not_known_changes_nothing() -> None:
    assert available(FreeMemory(node=None, pods_cache=None)) == (4 * GIB, 3 * GIB, 8 * GIB)


def test_the_figures_come_from_the_kernels_files(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\n")
    pods = tmp_path / "memory" / "kubepods"
    pods.mkdir(parents=True)
    (pods / "memory.stat").write_text("active_file 1\ntotal_active_file 4096\n")
    tree = CgroupV1(mounts={"memory": str(tmp_path / "memory")})
    assert free_memory(tree, "/kubepods", proc=str(tmp_path)) == FreeMemory(node=8 * MIB, pods_cache=4096)
    assert free_memory(tree, "/none", proc=str(tmp_path / "no")) == FreeMemory(node=None, pods_cache=None)
