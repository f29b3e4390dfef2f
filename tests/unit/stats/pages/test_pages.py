"""The pages of /metrics/resource and /metrics/cadvisor."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

from glasslet.host.cgroups.figures import Details, Limits, Transfers
from glasslet.host.machine import Machine
from glasslet.stats.cgroups.handles import Handles
from glasslet.stats.disks.disk_counters import DiskCounters
from glasslet.stats.disks.disk_usage import FilesystemFigures
from glasslet.stats.node_figures import Sockets
from glasslet.stats.pages.cadvisor_page import MachineLabels, cadvisor_page
from glasslet.stats.pages.container_families import families
from glasslet.stats.pages.exposition import Page, labels, sample
from glasslet.stats.pages.filesystem_families import NodeFilesystem
from glasslet.stats.pages.resource_page import resource_page
from glasslet.stats.readings import NodeReading
from tests.builders.observed import START, observed_container
from tests.builders.reading import AT, POD_GROUP, container_reading, figures, memory, pod_reading, reading

MILLISECONDS = AT // 1_000_000
DATA = json.loads((Path(__file__).parents[3] / "data" / "metrics.json").read_text())
DETAILS = Details(
    limits=Limits(shares=1024, period=100_000, quota=50_000, threads=100),
    user=1_500_000_000,
    system=500_000_000,
    periods=40,
    throttled_periods=7,
    throttled=2_000_000_000,
    kernel_memory=77,
    max_usage=150,
    limit_hits=3,
    oom_kills=2,
    threads=9,
    transfers=(Transfers("8:0", 10, 20, 1, 2), Transfers("9:9", 1, 1, 1, 1)),
)
MACHINE = MachineLabels(
    machine=Machine(memory_capacity=1000, swap_capacity=500, cpu_count=4, boot_id="b", machine_id="m", system_uuid="s"),
    topology=Sockets(sockets=1, cores=2),
    device=lambda numbers: "/dev/sda" if numbers == "8:0" else "",
    booted=datetime(2025, 12, 31, tzinfo=UTC),
    sandbox_image="pause:3.10",
)
DISK = DiskCounters(
    reads_merged=1,
    sectors_read=2,
    read_time=3000,
    writes_merged=4,
    sectors_written=5,
    write_time=6500,
    under_way=7,
    busy=8000,
    weighted=9000,
)
MAIN = f'container="main",id="{POD_GROUP}/main-0",image="busybox",name="main-0",namespace="default",pod="web"'
POD = f'container="",id="{POD_GROUP}",image="",name="",namespace="default",pod="web"'
SANDBOX = f'container="",id="{POD_GROUP}/sandbox-0",image="pause:3.10",name="sandbox-0",namespace="default",pod="web"'
ROOT = 'container="",id="/",image="",name="",namespace="",pod=""'


def node() -> NodeReading:
    """One pod, read in full detail."""
    main = container_reading(
        observed_container(image="busybox"),
        figures(3_000_000_000, details=DETAILS, pids=(b"7", b"8")),
        handles=Handles(files=12, sockets=4, limit=1024),
    )
    return reading(pod_reading(main, figures=figures(4_000_000_000, details=Details()), sandbox=figures(0)))


def page(of: NodeReading | None = None, *, psi: bool = True) -> list[str]:
    """The lines of /metrics/cadvisor."""
    disk = FilesystemFigures(taken_at=AT, capacity=100, available=40, used=60, inodes=10, inodes_free=4)
    return (
        cadvisor_page(of or node(), families(psi=psi), MACHINE, {"/dev/vda": NodeFilesystem(disk, DISK)})
        .decode()
        .splitlines()
    )


def listed(endpoint: str) -> dict[str, tuple[str, set[str]]]:
    """What the reference lists: kind and labels by name."""
    rows = (row for row in DATA["rows"] if row["endpoint"] == endpoint)
    return {row["name"]: (row["type"], set(row["labels"])) for row in rows}


def shape(lines: list[str]) -> dict[str, tuple[str, set[str]]]:
    """Kind and labels of everything in a page."""
    kinds = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
    found: dict[str, tuple[str, set[str]]] = {name: (kind, set()) for name, kind in kinds.items()}
    for line in lines:
        if not line.startswith("#"):
            name = re.match(r"\w+", line)
            assert name is not None
            found[name[0]][1].update(re.findall(r'(\w+)="', line))
    return found


def test_every_family_is_listed_with_its_kind_and_labels() -> None:
    for endpoint, lines in (
        ("/metrics/cadvisor", page()),
        ("/metrics/resource", resource_page(node()).decode().split("\n")),
    ):
        known = listed(endpoint)
        for name, (kind, found) in shape([line for line in lines if line]).items():
            assert name in known
            assert (name, kind) == (name, known[name][0])
            assert found == known[name][1]


def test_families_stand_in_the_order_of_their_names() -> None:
    for lines in (page(), resource_page(node()).decode().splitlines()):
        names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
        assert names == sorted(names)


def test_every_family_that_resource_metrics_list_is_there() -> None:
    hidden = {"scrape_error"}  # metrics.md: "deprecated 1.29.0, hidden by default"
    lines = resource_page(node()).decode().splitlines()
    assert set(shape(lines)) == set(listed("/metrics/resource")) - hidden


def test_resource_metrics_of_node_pod_and_container() -> None:
    lines = resource_page(node()).decode().splitlines()
    whose = '{container="main",pod="web",namespace="default"}'
    assert f"container_cpu_usage_seconds_total{whose} 3.0 {MILLISECONDS}" in lines
    assert f"container_memory_working_set_bytes{whose} 80 {MILLISECONDS}" in lines
    assert f"container_swap_limit_bytes{whose} 50 {MILLISECONDS}" in lines
    assert f"container_swap_usage_bytes{whose} 5 {MILLISECONDS}" in lines
    assert f'pod_cpu_usage_seconds_total{{pod="web",namespace="default"}} 4.0 {MILLISECONDS}' in lines
    assert f"node_cpu_usage_seconds_total 9e-05 {MILLISECONDS}" in lines
    # metrics.md: "container_start_time_seconds ... no timestamp"
    assert f"container_start_time_seconds{whose} {START.timestamp()}" in lines
    assert lines[-1] == "resource_scrape_error 0"


def test_a_node_that_cannot_be_read_says_only_that() -> None:
    # metrics.md: "when 1 nothing else is sent"
    for failed in (None, reading(groups={})):
        lines = resource_page(failed).decode().splitlines()
        assert [line for line in lines if not line.startswith("#")] == ["resource_scrape_error 1"]


def test_a_pod_without_a_group_is_summed_up_for_resource_metrics() -> None:
    side = container_reading(observed_container("side"), figures(1_000_000_000))
    main = container_reading(found=figures(2_000_000_000))
    lines = resource_page(reading(pod_reading(main, side, figures=None))).decode().splitlines()
    assert f'pod_cpu_usage_seconds_total{{pod="web",namespace="default"}} 3.0 {MILLISECONDS}' in lines
    assert f'pod_memory_working_set_bytes{{pod="web",namespace="default"}} 160 {MILLISECONDS}' in lines


def test_a_swap_limit_that_is_none_is_left_out() -> None:
    # metrics.md: "absent where no limit is known"
    free = container_reading(found=figures(memory=memory(swap_limit=None)))
    assert "container_swap_limit_bytes" not in resource_page(reading(pod_reading(free))).decode()


def test_a_container_has_all_its_labels() -> None:
    # metrics.md: "id = cgroup path, name = first runtime alias, image, container, pod, namespace; missing ones are
    # empty strings. Pod-level cgroups get pod and namespace but an empty container label."
    lines = page()
    for whose in (MAIN, POD, SANDBOX, ROOT):
        assert f"container_memory_rss{{{whose}}} 60 {MILLISECONDS}" in lines


def test_details_of_a_container() -> None:
    lines = page()
    for expected in (
        f'container_cpu_usage_seconds_total{{{MAIN},cpu="total"}} 3.0 {MILLISECONDS}',
        f"container_cpu_user_seconds_total{{{MAIN}}} 1.5 {MILLISECONDS}",
        f"container_cpu_cfs_throttled_seconds_total{{{MAIN}}} 2.0 {MILLISECONDS}",
        f"container_memory_failcnt{{{MAIN}}} 3 {MILLISECONDS}",
        f'container_memory_failures_total{{{MAIN},failure_type="pgmajfault",scope="hierarchy"}} 2 {MILLISECONDS}',
        f"container_oom_events_total{{{MAIN}}} 2 {MILLISECONDS}",
        f'container_fs_writes_bytes_total{{{MAIN},device="/dev/sda"}} 20 {MILLISECONDS}',
        f'container_fs_reads_total{{{MAIN},device="9:9"}} 1 {MILLISECONDS}',
        f"container_processes{{{MAIN}}} 2 {MILLISECONDS}",
        f"container_threads_max{{{MAIN}}} 100 {MILLISECONDS}",
        f"container_sockets{{{MAIN}}} 4 {MILLISECONDS}",
        f'container_ulimits_soft{{{MAIN},ulimit="max_open_files"}} 1024 {MILLISECONDS}',
        f"container_pressure_memory_waiting_seconds_total{{{MAIN}}} 3e-08 {MILLISECONDS}",
        # metrics.md: container_spec_* "no timestamp"
        f"container_spec_cpu_quota{{{MAIN}}} 50000",
        f"container_spec_memory_limit_bytes{{{MAIN}}} 200",
        f"container_start_time_seconds{{{MAIN}}} {START.timestamp()}",
    ):
        assert expected in lines


def test_a_group_that_used_no_cpu_yet_has_no_cpu_counter() -> None:
    # metrics.md: 'cpu="total"; absent while 0'
    assert not [line for line in page() if line.startswith("container_cpu_usage") and SANDBOX in line]


def test_throttling_is_only_shown_with_a_quota() -> None:
    # metrics.md: container_cpu_cfs_* "only with a quota"
    assert not [line for line in page() if line.startswith("container_cpu_cfs") and POD in line]


def test_a_group_without_weight_and_quota_has_zeros_for_them() -> None:
    """As the root group of cgroup v2, which has neither of the files."""
    shown = {
        line.partition("{")[0]: line.rpartition(" ")[2]
        for line in page()
        if line.startswith("container_spec_cpu") and POD in line
    }
    assert shown == {"container_spec_cpu_period": "0", "container_spec_cpu_shares": "0"}


def test_traffic_belongs_to_sandboxes_and_to_the_node() -> None:
    # metrics.md: "pod level only: container label empty, or POD"
    received = [line for line in page() if line.startswith("container_network_receive_bytes_total{")]
    assert received == [
        f'container_network_receive_bytes_total{{{ROOT},interface="ens3"}} 10 {MILLISECONDS}',
        f'container_network_receive_bytes_total{{{SANDBOX},interface="eth0"}} 10 {MILLISECONDS}',
    ]


def test_the_nodes_own_limits_and_disks_are_there() -> None:
    lines = page()
    assert f"container_spec_memory_limit_bytes{{{ROOT}}} 1000" in lines
    assert f'container_fs_usage_bytes{{{ROOT},device="/dev/vda"}} 60 {MILLISECONDS}' in lines
    assert "container_scrape_error 0" in lines


def test_what_the_disk_did_is_the_nodes_in_seconds_and_sectors() -> None:
    lines = page()
    for name, value in {
        "reads_merged_total": "1",
        "sector_reads_total": "2",
        "read_seconds_total": "3.0",
        "writes_merged_total": "4",
        "sector_writes_total": "5",
        "write_seconds_total": "6.5",
        "io_current": "7",
        "io_time_seconds_total": "8.0",
        "io_time_weighted_seconds_total": "9.0",
    }.items():
        assert f'container_fs_{name}{{{ROOT},device="/dev/vda"}} {value} {MILLISECONDS}' in lines


def test_load_and_states_of_tasks_are_zero_for_every_group() -> None:
    # metrics.md: "0 unless the load reader runs"
    lines = page()
    for whose in (MAIN, POD, SANDBOX, ROOT):
        assert f"container_cpu_load_average_10s{{{whose}}} 0 {MILLISECONDS}" in lines
        assert f"container_cpu_load_d_average_10s{{{whose}}} 0 {MILLISECONDS}" in lines
        for state in ("sleeping", "running", "stopped", "uninterruptible", "iowaiting"):
            assert f'container_tasks_state{{{whose},state="{state}"}} 0 {MILLISECONDS}' in lines


def test_groups_above_pods_have_nothing_but_their_id() -> None:
    base = 'container="",id="/kubepods",image="",name="",namespace="",pod=""'
    assert f"container_start_time_seconds{{{base}}} 1767200000.5" in page()


def test_pressure_needs_its_gate() -> None:
    assert not [line for line in page(psi=False) if "pressure" in line]


def test_the_machine_is_described() -> None:
    lines = page()
    whose = '{boot_id="b",machine_id="m",system_uuid="s"}'
    assert f"machine_cpu_cores{whose} 4 {MILLISECONDS}" in lines
    assert f"machine_cpu_physical_cores{whose} 2 {MILLISECONDS}" in lines
    assert f"machine_memory_bytes{whose} 1000 {MILLISECONDS}" in lines
    assert "machine_scrape_error 0" in lines


def test_a_container_that_just_ended_spoils_nothing() -> None:
    gone = type(container_reading())(observed_container("gone"), "", None)
    lines = page(reading(pod_reading(gone, figures=None, interfaces=None)))
    assert "container_scrape_error 0" in lines
    assert not [line for line in lines if 'pod="web"' in line]


def test_labels_are_escaped() -> None:
    assert labels(image='a"b\\c\nd') == '{image="a\\"b\\\\c\\nd"}'


def test_families_without_samples_are_left_out() -> None:
    written = Page()
    written.family("a_total", "counter", "A", [])
    written.family("b", "gauge", "B", [sample("", 1), sample('{x="1"}', 2, 3)])
    assert written.encoded() == b'# HELP b B\n# TYPE b gauge\nb 1\nb{x="1"} 2 3\n'
