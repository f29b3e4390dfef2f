"""What the page shows of the pressure on a node: the figures and lines of eviction."""

from __future__ import annotations

from glasslet.eviction.reading import Reading
from glasslet.eviction.signals import Signal, observe
from glasslet.eviction.thresholds import Threshold, with_container_disk
from glasslet.eviction.trends import Trends
from glasslet.glass.page.pressure import pressure_of
from glasslet.stats.disks.storage import DiskLayout
from tests.builders.eviction import GIB, TAKEN, disk, summary

THRESHOLDS = (
    Threshold(signal=Signal.MEMORY, amount="1Gi"),
    Threshold(signal=Signal.NODEFS, amount="10%"),
    Threshold(signal=Signal.IMAGEFS, amount="15%"),
)


def lines(layout: DiskLayout) -> dict[str, float | None]:
    seen = observe(
        summary(fs=disk(capacity=100 * GIB), image_fs=disk(capacity=100 * GIB if layout == DiskLayout() else 200 * GIB))
    )
    reading = Reading(
        taken=0.0,
        thresholds=with_container_disk(THRESHOLDS, layers_apart=layout.layers_apart),
        observations=seen,
        layout=layout,
    )
    return {row.resource: row.line and round(row.line / GIB) for row in pressure_of(reading, Trends(), {}).rows}


def test_one_disk_has_the_highest_of_its_lines() -> None:
    assert lines(DiskLayout()) == {
        "memory": 1,
        "memory of all pods": None,
        "disk of the node": 15,
        "inodes of the node's disk": None,
        "process ids": None,
    }


def test_a_disk_of_images_has_a_row_and_a_line_of_its_own() -> None:
    found = lines(DiskLayout(layers_apart=True))
    assert (found["disk of the node"], found["disk of images"]) == (10, 30)


def test_where_only_images_are_apart_the_lines_of_layers_count_for_the_node() -> None:
    found = lines(DiskLayout(images_apart=True))
    assert (found["disk of the node"], found["disk of images"]) == (10, 30)


def test_rows_say_what_they_count() -> None:
    reading = Reading(taken=0.0, thresholds=(), observations=observe(summary()))
    units = {row.resource: row.unit for row in pressure_of(reading, Trends(), {}).rows}
    assert units["process ids"] == "pids"
    assert units["inodes of the node's disk"] == "inodes"
    assert units["memory"] == "bytes"


def test_a_row_says_how_its_figure_comes_about_how_far_the_line_is_and_which_files_say_so() -> None:
    reading = Reading(taken=0.0, thresholds=THRESHOLDS, observations=observe(summary(free=4 * GIB)))
    memory, *_ = pressure_of(reading, Trends(), {Signal.MEMORY: "/proc/meminfo"}).rows
    assert memory.free == "4 GiB"
    assert memory.how.startswith("4 GiB = capacity 8 GiB - working set 4 GiB; ")
    assert memory.how.endswith("; evicts below 1 GiB, so 3 GiB to go; from /proc/meminfo")
    assert memory.at == TAKEN
