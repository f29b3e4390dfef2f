from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.codec import convert
from glasslet.api.volume import EmptyDirVolumeSource
from glasslet.volumes.plugin import VolumeProblem
from glasslet.volumes.types.empty_dir_size import page_size, tmpfs_size
from tests.builders.podspec import pod_of


@pytest.mark.parametrize(
    ("size_limit", "pod_limit", "allocatable", "size"),
    [
        # behaviours.md §22: "Memory = tmpfs sized min(sizeLimit, pod memory limit, node allocatable)"
        ("10", 20, 30, 10),
        ("40", 20, 30, 20),
        ("40", 0, 30, 30),
        (None, 50, 30, 30),
        ("0", 20, 30, 20),
        ("10", 0, 0, 10),
        (None, 0, 0, 0),
    ],
)
def test_memory_is_bounded_by_the_least_of_three(
    size_limit: str | None, pod_limit: int, allocatable: int, size: int
) -> None:
    source = convert({"medium": "Memory", "sizeLimit": size_limit}, EmptyDirVolumeSource)
    assert tmpfs_size(source, pod_limit=pod_limit, allocatable=allocatable) == size


def asking(*sizes: str) -> dict[str, Any]:
    return {"resources": {"requests": {f"hugepages-{size}": size for size in sizes}}}


@pytest.mark.parametrize(
    ("medium", "containers", "size"),
    [
        ("HugePages", [asking("2Mi")], "2Mi"),
        ("HugePages", [asking("2Mi"), asking("2Mi")], "2Mi"),
        ("HugePages-1Gi", [asking("2Mi"), asking("1Gi")], "1Gi"),
        ("HugePages-1024Mi", [asking("1Gi")], "1Gi"),
    ],
)
def test_pages_are_those_that_the_containers_ask_for(medium: str, containers: list[Any], size: str) -> None:
    assert page_size(medium, pod_of(*containers)) == size


def test_pages_may_be_asked_for_by_an_init_container_or_the_pod_as_a_whole() -> None:
    assert page_size("HugePages", pod_of(initContainers=[{"name": "i", "image": "x"} | asking("2Mi")])) == "2Mi"
    assert page_size("HugePages", pod_of(resources={"requests": {"hugepages-1Gi": "1Gi"}})) == "1Gi"


@pytest.mark.parametrize(
    ("medium", "containers", "message"),
    [
        (
            "HugePages",
            [{}],
            "medium HugePages: hugePages storage requested, but there is no resource request for huge pages",
        ),
        (
            "HugePages-1Gi",
            [asking("2Mi")],
            "medium HugePages-1Gi: hugePages storage requested, but there is no resource",
        ),
        (
            "HugePages-lots",
            [asking("2Mi")],
            "medium HugePages-lots: hugePages storage requested, but there is no resource",
        ),
        (
            "HugePages",
            [asking("2Mi"), asking("1Gi")],
            "medium: HugePages can't be used if container requests multiple huge page sizes",
        ),
    ],
)
def test_pages_that_nobody_or_several_ask_for_are_refused(medium: str, containers: list[Any], message: str) -> None:
    with pytest.raises(VolumeProblem, match=message):
        page_size(medium, pod_of(*containers))
