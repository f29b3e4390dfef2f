"""`/metrics/cadvisor`: all control groups that matter, and the machine. Pure.

/                       the node                    id
kubepods, QoS, system   what stands above pods      id
pod                     one pod with everything     id, pod, namespace
sandbox                 and its network             id, pod, namespace, name, image
container                                           id, pod, namespace, name, image, container
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from glasslet.host.cgroups.figures import CgroupFigures
from glasslet.host.machine import Machine
from glasslet.stats.node_figures import Sockets
from glasslet.stats.pages.container_families import Family, Row, Rows
from glasslet.stats.pages.exposition import Page, label_pairs
from glasslet.stats.pages.filesystem_families import NodeFilesystem, of_filesystems
from glasslet.stats.readings import ROOT, NodeReading, PodReading

_MILLISECOND = 1_000_000
_Samples = Iterable[str]


class MachineLabels(Struct, frozen=True, kw_only=True):
    """Facts of the machine on the page. `device`: a block device's name by its numbers; `sandbox_image`: the
    image label of sandboxes, whose own image is not known."""

    machine: Machine
    topology: Sockets
    device: Callable[[str], str]
    booted: datetime | None = None
    sandbox_image: str = ""


def cadvisor_page(
    reading: NodeReading, families: Iterable[Family], facts: MachineLabels, filesystems: Mapping[str, NodeFilesystem]
) -> bytes:
    """The page. `filesystems`: those of the node, by device name."""
    rows = Rows(_rows(reading, facts))
    found = dict(of_filesystems(_base(ROOT), filesystems))
    lost = 0 if ROOT in reading.groups else 1
    found["container_scrape_error"] = ("gauge", "1 if control groups could not be read, else 0", [f" {lost}"])
    found.update(_of_machine(facts, max((row.stamp for row in rows), default="")))
    of_groups = {family.name: family for family in families}
    page = Page()
    for name in sorted(found.keys() | of_groups.keys()):
        # A group's samples only once their turn comes: never is the whole page there as text and as bytes.
        page.family(name, *(found.get(name) or _written(of_groups[name], rows)))
    return page.encoded()


def _written(family: Family, rows: Rows) -> tuple[str, str, _Samples]:
    return family.kind, family.text, family.samples(rows)


def _rows(reading: NodeReading, facts: MachineLabels) -> Iterator[Row]:
    booted = facts.booted.timestamp() if facts.booted is not None else 0.0
    for group, figures in reading.groups.items():
        started = max(reading.made_at.get(group, booted), booted)
        row = _row(_base(group), _limited(figures, facts.machine) if group == ROOT else figures, started, facts)
        yield replace(row, interfaces=reading.interfaces) if group == ROOT else row
    for pod in reading.pods:
        yield from _pod_rows(pod, facts)


def _pod_rows(pod: PodReading, facts: MachineLabels) -> Iterator[Row]:
    target = pod.target
    whose = {"namespace": target.ref.namespace, "pod": target.ref.name}
    started = target.sandbox.created_at.timestamp()
    if pod.figures is not None:
        yield _row(_base(target.cgroup, **whose), pod.figures, started, facts)
    if pod.sandbox is not None:
        labels = _base(pod.sandbox_group, name=target.sandbox.id, image=facts.sandbox_image, **whose)
        yield replace(_row(labels, pod.sandbox, started, facts), interfaces=pod.interfaces or ())
    for one in pod.containers:
        if one.figures is None:
            continue
        container = one.container
        labels = _base(one.group, container=container.name, name=container.id, image=container.image, **whose)
        began = (container.started_at or container.created_at).timestamp()
        yield replace(_row(labels, one.figures, began, facts), handles=one.handles)


def _base(
    id: str,  # noqa: A002 - the label's name
    *,
    container: str = "",
    name: str = "",
    image: str = "",
    namespace: str = "",
    pod: str = "",
) -> str:
    return label_pairs(container=container, id=id, image=image, name=name, namespace=namespace, pod=pod)


def _row(labels: str, figures: CgroupFigures, started: float, facts: MachineLabels) -> Row:
    details = figures.details
    if details is not None and details.transfers:
        named = tuple(replace(one, name=facts.device(one.numbers)) for one in details.transfers)
        figures = replace(figures, details=replace(details, transfers=named))
    return Row(labels=labels, figures=figures, started=started, stamp=f" {figures.taken_at // _MILLISECOND}")


def _limited(root: CgroupFigures, machine: Machine) -> CgroupFigures:
    """The limits of the whole node are what the machine has."""
    if root.memory is None:
        return root
    return replace(root, memory=replace(root.memory, limit=machine.memory_capacity, swap_limit=machine.swap_capacity))


def _of_machine(facts: MachineLabels, stamp: str) -> Iterator[tuple[str, tuple[str, str, _Samples]]]:
    machine = facts.machine
    labels = label_pairs(boot_id=machine.boot_id, machine_id=machine.machine_id, system_uuid=machine.system_uuid)
    values = {
        "machine_cpu_cores": ("Logical CPUs", machine.cpu_count),
        "machine_cpu_physical_cores": ("Physical cores", facts.topology.cores),
        "machine_cpu_sockets": ("CPU sockets", facts.topology.sockets),
        "machine_memory_bytes": ("Memory", machine.memory_capacity),
        "machine_swap_bytes": ("Swap", machine.swap_capacity),
    }
    for name, (text, value) in values.items():
        yield name, ("gauge", text, [f"{{{labels}}} {value}{stamp}"])
    yield "machine_scrape_error", ("gauge", "1 if the machine could not be read, else 0", [" 0"])
    about = label_pairs(
        cadvisorRevision="",
        cadvisorVersion="",
        dockerVersion="",
        kernelVersion=machine.kernel_version,
        osVersion=machine.os_image,
    )
    yield "cadvisor_version_info", ("gauge", "Versions of kernel and system, as labels", [f"{{{about}}} 1"])
