"""The Summary API, field by field."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.volume import (
    ConfigMapVolumeSource,
    EmptyDirVolumeSource,
    EphemeralVolumeSource,
    PersistentVolumeClaimVolumeSource,
    SecretVolumeSource,
    Volume,
)
from glasslet.runtime.model import FilesystemUsage
from glasslet.runtime.usage import ContainerUsage, CPUUsage, MemoryUsage
from glasslet.stats.disks.disk_usage import FilesystemFigures, Taken
from glasslet.stats.disks.storage import PodFilesTaken, StorageFigures
from glasslet.stats.disks.volume_usage import VolumeTaken
from glasslet.stats.node_figures import TaskLimit
from glasslet.stats.pages.summary import DiskFacts, StatsUnavailable, SummaryNode, build_summary
from glasslet.stats.pages.summary_types import encode_summary
from glasslet.stats.readings import NodeReading
from glasslet.stats.targets import SystemGroups
from tests.builders.observed import observed_container
from tests.builders.pod import UID, pod
from tests.builders.reading import AT, container_reading, eth0, figures, memory, pod_reading, reading

NOW = "2026-01-01T00:00:00Z"
BOOTED = datetime(2025, 12, 31, tzinfo=UTC)
STARTED = datetime(2025, 12, 31, 12, tzinfo=UTC)
FACTS = SummaryNode(
    name="node-1",
    booted=BOOTED,
    started=STARTED,
    memory=1000,
    swap=500,
    system=SystemGroups(kubelet="/system/kubelet", pods="/kubepods"),
)
PSI = {
    "full": {"total": 3, "avg10": 0.3, "avg60": 0.2, "avg300": 0.1},
    "some": {"total": 30, "avg10": 3.0, "avg60": 2.0, "avg300": 1.0},
}
MEMORY = {
    "time": NOW,
    "availableBytes": 120,
    "usageBytes": 100,
    "workingSetBytes": 80,
    "rssBytes": 60,
    "pageFaults": 9,
    "majorPageFaults": 2,
    "psi": PSI,
}
ROOT_FS = FilesystemFigures(
    taken_at=AT, capacity=10_000, available=4_000, used=6_000, inodes=100, inodes_free=40, device=1
)
IMAGE_FS = FilesystemFigures(taken_at=AT, capacity=20_000, available=9_000, used=11_000, inodes=200, inodes_free=150)
LAYER = FilesystemUsage(mountpoint="/images", used_bytes=300, inodes_used=3)
RATES = {"/": 700, "/kubepods/burstable/pod0f1e2d3c": 40, "/kubepods/burstable/pod0f1e2d3c/main-0": 30}


def storage(**changes: Any) -> StorageFigures:
    facts: dict[str, Any] = {
        "root": ROOT_FS,
        "images": FilesystemUsage(mountpoint="/images", used_bytes=5000, inodes_used=50),
        "filesystems": {"/images": IMAGE_FS},
        "usages": {ContainerID("main-0"): ContainerUsage(id=ContainerID("main-0"), writable_layer=LAYER)},
        "pods": {
            PodUID(UID): PodFilesTaken(containers={"main": Taken(70, 2)}, logs=Taken(8, 1), etc_hosts=Taken(4, 1))
        },
    }
    return StorageFigures(**(facts | changes))


def summary(
    of: NodeReading, *, only: bool = False, volumes: dict[str, VolumeTaken] | None = None, **changes: Any
) -> Any:
    """The summary as a client reads it."""
    disks = None
    if not only:
        disks = DiskFacts(
            storage=changes.pop("storage", storage()),
            volumes={PodUID(UID): volumes or {}},
            tasks=TaskLimit(maximum=32768, current=321),
        )
    facts = changes.pop("facts", FACTS)
    return json.loads(encode_summary(build_summary(of, facts, RATES.get, disks)))


def test_a_node_has_all_its_fields() -> None:
    # behaviours.md §32: "Node: cpu, memory, swap (and io with KubeletPSI) of the root cgroup, network of the default
    # interface, fs = root-dir file system, runtime.imageFs and runtime.containerFs, rlimit (maxpid, curproc as in
    # section 15), startTime = boot time."
    image_fs = {
        "time": NOW,
        "availableBytes": 9000,
        "capacityBytes": 20000,
        "usedBytes": 5000,
        "inodesFree": 150,
        "inodes": 200,
        "inodesUsed": 50,
    }
    assert summary(reading(pod_reading(container_reading())))["node"] == {
        "nodeName": "node-1",
        "startTime": "2025-12-31T00:00:00Z",
        "systemContainers": [
            {
                "name": "pods",
                "startTime": "2025-12-31T16:53:20Z",
                "cpu": {"time": NOW, "usageCoreNanoSeconds": 50_000, "psi": PSI},
                "memory": MEMORY,
                "swap": {"time": NOW, "swapAvailableBytes": 45, "swapUsageBytes": 5},
                "io": {"time": NOW, "psi": PSI},
            }
        ],
        "cpu": {"time": NOW, "usageNanoCores": 700, "usageCoreNanoSeconds": 90_000, "psi": PSI},
        "memory": {**MEMORY, "availableBytes": 920},
        "io": {"time": NOW, "psi": PSI},
        "network": {
            "time": NOW,
            "name": "",
            "interfaces": [{"name": "ens3", "rxBytes": 10, "rxErrors": 2, "txBytes": 20, "txErrors": 4}],
        },
        "fs": {
            "time": NOW,
            "availableBytes": 4000,
            "capacityBytes": 10000,
            "usedBytes": 6000,
            "inodesFree": 40,
            "inodes": 100,
            "inodesUsed": 60,
        },
        "runtime": {"imageFs": image_fs, "containerFs": image_fs},
        "rlimit": {"time": NOW, "maxpid": 32768, "curproc": 321},
        "swap": {"time": NOW, "swapAvailableBytes": 495, "swapUsageBytes": 5},
    }


def test_a_pod_has_all_its_fields() -> None:
    # behaviours.md §32: "pod network from the sandbox's cgroup; pod cpu and memory from the pod cgroup"
    (found,) = summary(reading(pod_reading(container_reading())))["pods"]

    assert found == {
        "podRef": {"name": "web", "namespace": "default", "uid": UID},
        "startTime": NOW,
        "containers": [
            {
                "name": "main",
                "startTime": NOW,
                "cpu": {"time": NOW, "usageNanoCores": 30, "usageCoreNanoSeconds": 1000, "psi": PSI},
                "memory": MEMORY,
                "io": {"time": NOW, "psi": PSI},
                "rootfs": {
                    "time": NOW,
                    "availableBytes": 9000,
                    "capacityBytes": 20000,
                    "usedBytes": 300,
                    "inodesFree": 150,
                    "inodes": 200,
                    "inodesUsed": 3,
                },
                "logs": {
                    "time": NOW,
                    "availableBytes": 4000,
                    "capacityBytes": 10000,
                    "usedBytes": 70,
                    "inodesFree": 40,
                    "inodes": 100,
                    "inodesUsed": 2,
                },
                "swap": {"time": NOW, "swapAvailableBytes": 45, "swapUsageBytes": 5},
            }
        ],
        "cpu": {"time": NOW, "usageNanoCores": 40, "usageCoreNanoSeconds": 2000, "psi": PSI},
        "memory": MEMORY,
        "io": {"time": NOW, "psi": PSI},
        "network": {
            "time": NOW,
            "name": "eth0",
            "rxBytes": 10,
            "rxErrors": 2,
            "txBytes": 20,
            "txErrors": 4,
            "interfaces": [{"name": "eth0", "rxBytes": 10, "rxErrors": 2, "txBytes": 20, "txErrors": 4}],
        },
        "ephemeral-storage": {
            "time": NOW,
            "availableBytes": 4000,
            "capacityBytes": 10000,
            "usedBytes": 382,
            "inodesFree": 40,
            "inodes": 100,
            "inodesUsed": 7,
        },
        "process_stats": {"process_count": 1},
        "swap": {"time": NOW, "swapAvailableBytes": 45, "swapUsageBytes": 5},
    }


def test_only_cpu_and_memory_are_left_on_request() -> None:
    # http.md: "only_cpu_and_memory=true leaves nodeName, startTime (of the root cgroup), systemContainers, and cpu,
    # memory (with psi) and swap of node, pods and containers; no network, fs, runtime, rlimit, volume, io."
    found = summary(reading(pod_reading(container_reading())), only=True)

    assert set(found["node"]) == {"nodeName", "startTime", "systemContainers", "cpu", "memory", "swap"}
    (web,) = found["pods"]
    assert set(web) == {"podRef", "startTime", "containers", "cpu", "memory", "swap"}
    assert set(web["containers"][0]) == {"name", "startTime", "cpu", "memory", "swap"}
    assert web["cpu"]["psi"] == PSI


def test_a_node_without_pods_has_an_empty_list() -> None:
    # http.md: "Always present: node, pods, nodeName, startTime, podRef, containers, name and every time"
    assert summary(reading())["pods"] == []


def test_a_pod_without_running_containers_is_left_out() -> None:
    # behaviours.md §32: "only running containers of the ready sandbox"
    assert summary(reading(pod_reading()))["pods"] == []


def test_times_that_nobody_knows_are_null() -> None:
    assert summary(reading(), facts=SummaryNode(name="n"))["node"]["startTime"] is None


def test_a_node_whose_root_group_cannot_be_read_has_no_summary() -> None:
    with pytest.raises(StatsUnavailable, match="root cgroup"):
        summary(reading(groups={}))


def test_system_containers_without_a_known_group_are_left_out() -> None:
    # behaviours.md §32: "systemContainers, where their cgroup is known"; http.md: "System containers have no rootfs and
    # logs."
    groups = {"/": figures(), "/system/kubelet": figures()}
    (kubelet,) = summary(reading(groups=groups))["node"]["systemContainers"]
    assert (kubelet["name"], kubelet["startTime"]) == ("kubelet", "2025-12-31T12:00:00Z")
    assert not {"rootfs", "logs"} & set(kubelet)


def test_pressure_and_io_need_their_gate() -> None:
    # http.md: "psi and io appear with gate KubeletPSI"
    facts = SummaryNode(name="n", psi=False, system=SystemGroups(pods="/kubepods"))
    text = json.dumps(summary(reading(pod_reading(container_reading())), facts=facts))
    assert '"psi"' not in text
    assert '"io"' not in text


def test_available_memory_needs_a_limit() -> None:
    # http.md: "availableBytes (only with a limit)"
    free = container_reading(found=figures(memory=memory(limit=None, swap_limit=None)))
    (main,) = summary(reading(pod_reading(free)))["pods"][0]["containers"]
    assert "availableBytes" not in main["memory"]
    assert "swapAvailableBytes" not in main["swap"]


def test_use_above_a_limit_leaves_nothing_available() -> None:
    full = container_reading(found=figures(memory=memory(limit=70)))
    (main,) = summary(reading(pod_reading(full)))["pods"][0]["containers"]
    assert main["memory"]["availableBytes"] == 0


def test_a_pod_without_a_group_is_the_sum_of_its_containers() -> None:
    side = observed_container("side")
    (found,) = summary(reading(pod_reading(container_reading(), container_reading(side), figures=None)))["pods"]
    assert found["cpu"] == {"time": NOW, "usageNanoCores": 30, "usageCoreNanoSeconds": 2000}
    assert (found["memory"]["workingSetBytes"], found["memory"]["availableBytes"]) == (160, 240)
    assert found["swap"]["swapUsageBytes"] == 10
    assert found["process_stats"] == {"process_count": 2}


def test_a_pod_with_one_unlimited_container_has_no_available_memory() -> None:
    free = container_reading(observed_container("side"), figures(memory=memory(limit=None)))
    (found,) = summary(reading(pod_reading(container_reading(), free, figures=None)))["pods"]
    assert "availableBytes" not in found["memory"]


def test_where_no_group_is_known_the_runtimes_figures_count() -> None:
    # behaviours.md §32: "CPU and memory from cAdvisor when it knows the container, else from CRI"
    told = ContainerUsage(
        id=ContainerID("main-0"),
        cpu=CPUUsage(taken_at=datetime(2026, 1, 1, 0, 0, 5, 999, tzinfo=UTC), total=77, rate=7),
        memory=MemoryUsage(taken_at=STARTED, working_set=88, rss=8),
    )
    unknown = pod_reading(
        type(container_reading())(observed_container(), "", None), figures=None, interfaces=None, sandbox_group=""
    )

    (found,) = summary(reading(unknown), storage=storage(usages={ContainerID("main-0"): told}))["pods"]

    (main,) = found["containers"]
    assert main["cpu"] == {"time": "2026-01-01T00:00:05Z", "usageNanoCores": 7, "usageCoreNanoSeconds": 77}
    assert main["memory"] == {"time": "2025-12-31T12:00:00Z", "workingSetBytes": 88, "rssBytes": 8}
    assert found["memory"]["workingSetBytes"] == 88
    assert not {"network", "process_stats", "swap"} & set(found)


def test_what_is_not_known_of_the_disks_is_left_out() -> None:
    found = summary(reading(pod_reading(container_reading())), storage=StorageFigures())
    assert "fs" not in found["node"]
    assert found["node"]["runtime"] == {}
    (web,) = found["pods"]
    assert "ephemeral-storage" not in web
    assert not {"rootfs", "logs"} & set(web["containers"][0])


def test_a_writable_layer_on_an_unknown_file_system_has_its_size_alone() -> None:
    found = summary(reading(pod_reading(container_reading())), storage=storage(filesystems={}))
    rootfs = found["pods"][0]["containers"][0]["rootfs"]
    assert rootfs == {"time": None, "usedBytes": 300, "inodesUsed": 3}
    assert found["node"]["runtime"]["imageFs"] == {"time": None, "usedBytes": 5000, "inodesUsed": 50}


def volume_of(size: int) -> VolumeTaken:
    return VolumeTaken(filesystem=ROOT_FS, used=Taken(size, 1))


def test_volumes_have_sizes_and_claims() -> None:
    # behaviours.md §32: "pvcRef is set for claims and generic ephemeral volumes"
    of = pod(
        volumes=(
            Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="db")),
            Volume(name="scratch", ephemeral=EphemeralVolumeSource()),
            Volume(name="tmp", empty_dir=EmptyDirVolumeSource()),
            Volume(name="never-measured", empty_dir=EmptyDirVolumeSource()),
        )
    )
    taken = {"data": volume_of(1000), "scratch": volume_of(2000), "tmp": volume_of(3000)}

    (found,) = summary(reading(pod_reading(container_reading(), of=of)), volumes=taken)["pods"]

    data, scratch, tmp = found["volume"]
    assert data["pvcRef"] == {"name": "db", "namespace": "default"}
    assert scratch["pvcRef"] == {"name": "web-scratch", "namespace": "default"}
    assert tmp == {
        "name": "tmp",
        "time": NOW,
        "availableBytes": 4000,
        "capacityBytes": 10000,
        "usedBytes": 3000,
        "inodesFree": 40,
        "inodes": 100,
        "inodesUsed": 1,
    }


def test_local_volumes_are_emptydirs_on_disk_and_configmaps() -> None:
    # behaviours.md §32: "Local volumes: emptyDir on disk, configMap, gitRepo; all others count as persistent."
    # "used = container rootfs + logs + local volumes + etc-hosts"
    of = pod(
        volumes=(
            Volume(name="disk", empty_dir=EmptyDirVolumeSource()),
            Volume(name="memory", empty_dir=EmptyDirVolumeSource(medium="Memory")),
            Volume(name="config", config_map=ConfigMapVolumeSource(name="c")),
            Volume(name="secret", secret=SecretVolumeSource(secret_name="s")),
        )
    )
    sizes = {"disk": 1000, "memory": 20_000, "config": 300_000, "secret": 4_000_000}
    taken = {name: volume_of(size) for name, size in sizes.items()}

    (found,) = summary(reading(pod_reading(container_reading(), of=of)), volumes=taken)["pods"]

    assert found["ephemeral-storage"]["usedBytes"] == 382 + 1000 + 300_000


def test_the_default_interface_is_eth0() -> None:
    # http.md: "of the default interface (eth0) plus interfaces[]"
    two = pod_reading(container_reading(), interfaces=(eth0(name="net1", rx_bytes=1), eth0(rx_bytes=5)))
    network = summary(reading(two))["pods"][0]["network"]
    assert (network["name"], network["rxBytes"], len(network["interfaces"])) == ("eth0", 5, 2)


def test_the_text_is_indented() -> None:
    text = encode_summary(build_summary(reading(), FACTS, RATES.get, None))
    assert text.startswith(b'{\n "node": {\n  "nodeName": "node-1",\n')
