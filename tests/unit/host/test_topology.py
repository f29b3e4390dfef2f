"""The topology of recorded machines (rules: resource managers of Kubernetes 1.34, cAdvisor's machine information)."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.host.topology import LogicalCPU, Topology, read_topology
from tests.builders.machines import recorded_machine


def _machine(name: str, tmp_path: Path) -> Topology:
    return read_topology(recorded_machine(name, tmp_path))


def test_two_sockets_have_nodes_cores_and_threads(tmp_path: Path) -> None:
    found = _machine("two-sockets", tmp_path)
    assert len(found.cpus) == 16
    assert found.cpus[12] == LogicalCPU(id=12, core=4, socket=1, node=1, cache=1)
    assert [(node.id, node.memory, node.distances) for node in found.nodes] == [
        (0, 16 << 30, (10, 21)),
        (1, 16 << 30, (21, 10)),
    ]
    assert found.nodes[0].huge_pages == {2 << 20: 64, 1 << 30: 0}


def test_a_cache_of_the_whole_node_is_no_uncore_cache(tmp_path: Path) -> None:
    assert {cpu.cache for cpu in _machine("hybrid", tmp_path).cpus} == {0}


def test_caches_of_some_cores_are_uncore_caches(tmp_path: Path) -> None:
    assert [cpu.cache for cpu in _machine("split-cache", tmp_path).cpus] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_core_is_known_by_its_lowest_thread(tmp_path: Path) -> None:
    assert [cpu.core for cpu in _machine("hybrid", tmp_path).cpus] == [0, 0, 2, 2, 4, 5, 6, 7]


def test_a_node_of_memory_alone_is_a_node_and_an_offline_cpu_is_none(tmp_path: Path) -> None:
    found = _machine("sparse", tmp_path)
    assert [node.id for node in found.nodes] == [0, 1, 4]
    assert [cpu.id for cpu in found.cpus] == [0, 1, 2]


def test_without_numa_each_socket_is_a_node(tmp_path: Path) -> None:
    root = Path(recorded_machine("two-sockets", tmp_path))
    (root / "sys/devices/system/node").rename(root / "elsewhere")
    found = read_topology(str(root))
    assert {(cpu.socket, cpu.node) for cpu in found.cpus} == {(0, 0), (1, 1)}
    assert [(node.id, node.memory, node.distances) for node in found.nodes] == [(0, 0, ()), (1, 0, ())]


@pytest.mark.parametrize("content", ["", "x", "-1", "9" * 40, "0-99999999999"])
def test_files_that_make_no_sense_are_left_out(tmp_path: Path, content: str) -> None:
    root = Path(recorded_machine("split-cache", tmp_path))
    (root / "sys/devices/system/cpu/cpu0/topology/core_id").write_text(content)
    (root / "sys/devices/system/node/node0/distance").write_text(content or "?")
    found = read_topology(str(root))
    assert [cpu.id for cpu in found.cpus] == [1, 2, 3, 4, 5, 6, 7]
    assert found.nodes[0].distances == ()


def test_this_machine_has_cpus() -> None:
    assert read_topology().cpus
