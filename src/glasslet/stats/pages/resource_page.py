"""`/metrics/resource`: CPU, memory and swap of node, pods and containers.

Pure. Source: metrics.md, "/metrics/resource".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from glasslet.host.cgroups.figures import CgroupFigures, MemoryFigures
from glasslet.stats.pages.exposition import Page, labels, sample
from glasslet.stats.readings import ROOT, NodeReading, PodReading

_SECOND = 1_000_000_000
_MILLISECOND = 1_000_000
_Row = tuple[str, CgroupFigures]
"""Labels, and whose figures they are."""


def resource_page(reading: NodeReading | None) -> bytes:
    """The page; None: the node could not be read, which is all that it says then."""
    page = Page()
    root = reading.groups.get(ROOT) if reading is not None else None
    if reading is None or root is None:
        _error(page, 1)
        return page.encoded()
    running = [pod for pod in reading.pods if pod.containers]
    containers = [row for pod in running for row in _container_rows(pod)]
    _cpu_and_memory(page, "container", "Container", containers)
    page.family("container_start_time_seconds", "gauge", "[STABLE] Container start time", _starts(running))
    page.family(
        "container_swap_limit_bytes", "gauge", "[ALPHA] Container swap limit", _each(containers, lambda m: m.swap_limit)
    )
    _swap(page, "container", "Container", containers)
    for kind, whom, rows in (("node", "Node", [("", root)]), ("pod", "Pod", list(_pod_rows(running)))):
        _cpu_and_memory(page, kind, whom, rows)
        _swap(page, kind, whom, rows)
    _error(page, 0)
    return page.encoded()


def _cpu_and_memory(page: Page, kind: str, whom: str, rows: list[_Row]) -> None:
    page.family(
        f"{kind}_cpu_usage_seconds_total",
        "counter",
        f"[STABLE] {whom} CPU seconds",
        (
            sample(row, figures.cpu / _SECOND, figures.taken_at // _MILLISECOND)
            for row, figures in rows
            if figures.cpu is not None
        ),
    )
    page.family(
        f"{kind}_memory_working_set_bytes",
        "gauge",
        f"[STABLE] {whom} working set",
        _each(rows, lambda memory: memory.working_set),
    )


def _swap(page: Page, kind: str, whom: str, rows: list[_Row]) -> None:
    page.family(
        f"{kind}_swap_usage_bytes", "gauge", f"[ALPHA] {whom} swap use", _each(rows, lambda memory: memory.swap)
    )


def _each(rows: Iterable[_Row], value: Callable[[MemoryFigures], int | None]) -> Iterator[str]:
    for row, figures in rows:
        if figures.memory is not None and (found := value(figures.memory)) is not None:
            yield sample(row, found, figures.taken_at // _MILLISECOND)


def _container_rows(pod: PodReading) -> Iterator[_Row]:
    ref = pod.target.ref
    for one in pod.containers:
        if one.figures is not None:
            yield labels(container=one.container.name, pod=ref.name, namespace=ref.namespace), one.figures


def _starts(pods: Iterable[PodReading]) -> Iterator[str]:
    for pod in pods:
        ref = pod.target.ref
        for one in pod.containers:
            row = labels(container=one.container.name, pod=ref.name, namespace=ref.namespace)
            yield sample(row, one.container.created_at.timestamp())


def _pod_rows(pods: Iterable[PodReading]) -> Iterator[_Row]:
    for pod in pods:
        figures = pod.figures if pod.figures is not None else _together(pod)
        if figures is not None:
            yield labels(pod=pod.target.ref.name, namespace=pod.target.ref.namespace), figures


def _together(pod: PodReading) -> CgroupFigures | None:
    """The sum of the containers, for a pod without a group of its own."""
    parts = [one.figures for one in pod.containers if one.figures is not None]
    memory = [part.memory for part in parts if part.memory is not None]
    if not parts:
        return None
    return CgroupFigures(
        taken_at=parts[-1].taken_at,
        cpu=sum(part.cpu or 0 for part in parts),
        memory=MemoryFigures(
            usage=sum(one.usage for one in memory),
            working_set=sum(one.working_set for one in memory),
            swap=sum(one.swap for one in memory),
        ),
    )


def _error(page: Page, value: int) -> None:
    page.family(
        "resource_scrape_error", "gauge", "[STABLE] 1 if the figures could not be read, else 0", [sample("", value)]
    )
