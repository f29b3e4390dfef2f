"""Statistics of the runtime, decoded."""

from __future__ import annotations

from glasslet.runtime.cri._generated import stats_pb2
from glasslet.runtime.cri.decode_stats import decode_container_usage, decode_sandbox_usage


def test_figures_that_the_runtime_leaves_out_are_none() -> None:
    stats = stats_pb2.ContainerStats()
    stats.attributes.id = "c1"
    stats.attributes.metadata.name = "main"
    stats.cpu.timestamp = 1_000_000_000
    stats.cpu.usage_core_nano_seconds.value = 0

    usage = decode_container_usage(stats)

    assert (usage.id, usage.name, usage.memory, usage.writable_layer) == ("c1", "main", None, None)
    assert usage.cpu is not None
    assert (usage.cpu.total, usage.cpu.rate) == (0, None)


def test_a_writable_layer_has_size_and_place() -> None:
    stats = stats_pb2.ContainerStats()
    stats.writable_layer.fs_id.mountpoint = "/var/lib/containerd/snapshots"
    stats.writable_layer.used_bytes.value = 4096
    stats.writable_layer.inodes_used.value = 2

    layer = decode_container_usage(stats).writable_layer

    assert layer is not None
    assert (layer.mountpoint, layer.used_bytes, layer.inodes_used) == ("/var/lib/containerd/snapshots", 4096, 2)


def test_a_sandbox_tells_of_its_network_processes_and_containers() -> None:
    stats = stats_pb2.PodSandboxStats()
    stats.linux.network.default_interface.name = "eth0"
    stats.linux.network.default_interface.rx_bytes.value = 7
    stats.linux.process.process_count.value = 3
    stats.linux.containers.add().attributes.id = "c1"
    stats.linux.memory.working_set_bytes.value = 10

    usage = decode_sandbox_usage(stats)

    assert [(one.name, one.rx_bytes) for one in usage.interfaces] == [("eth0", 7)]
    assert (usage.processes, [one.id for one in usage.containers]) == (3, ["c1"])
    assert usage.memory is not None
    assert (usage.memory.working_set, usage.memory.rss) == (10, None)
