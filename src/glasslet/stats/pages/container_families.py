"""The metrics of /metrics/cadvisor that every control group has: name, kind, meaning, and where the value is.

Load averages and task states are 0, as the Go kubelet shows them: it never counts either. Left out: NVM, and block I/O
of groups beyond bytes and operations, which the kernel does not count. Source: metrics.md, "/metrics/cadvisor".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from msgspec import Struct

from glasslet.host.cgroups.figures import CgroupFigures, Details, MemoryFigures, Transfers
from glasslet.stats.cgroups.handles import Handles
from glasslet.stats.network import Interface

_SECOND = 1_000_000_000
_STATES = ("sleeping", "running", "stopped", "uninterruptible", "iowaiting")


class Row(Struct, frozen=True, kw_only=True):
    """One control group in the page. `labels`: pairs without braces; `started`: Unix time."""

    labels: str
    figures: CgroupFigures
    started: float | None
    stamp: str
    """The time of the reading as it stands behind a value: a space and milliseconds."""
    interfaces: tuple[Interface, ...] = ()
    handles: Handles | None = None


T = TypeVar("T")
Told = list[tuple[str, T, str]]
"""For each group that has such figures: its labels in braces with a space behind, the figures, the stamp."""


class Rows:
    """All groups of a page, and those that have memory or details: separated once, not once per metric."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.all = list(rows)
        labelled = [(f"{{{row.labels}}} ", row) for row in self.all]
        self.memory: Told[MemoryFigures] = [
            (labels, row.figures.memory, row.stamp) for labels, row in labelled if row.figures.memory is not None
        ]
        self.details: Told[Details] = [
            (labels, row.figures.details, row.stamp) for labels, row in labelled if row.figures.details is not None
        ]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.all)


class Family(Struct, frozen=True):
    """`samples` gives what follows the name, for all rows at once: a call per row would cost more than its text."""

    name: str
    kind: str
    text: str
    samples: Callable[[Rows], Iterable[str]]


def of_memory(name: str, text: str, value: Callable[[MemoryFigures], int], kind: str = "gauge") -> Family:
    """A figure that every group with a memory controller has."""

    def samples(rows: Rows) -> Iterable[str]:
        return [f"{labels}{value(memory)}{stamp}" for labels, memory, stamp in rows.memory]

    return Family(name, kind, text, samples)


def of_details(
    name: str,
    text: str,
    value: Callable[[Details], float | None],
    kind: str = "gauge",
    *,
    stamped: bool = True,
) -> Family:
    """A figure out of the details; None leaves it out."""

    def samples(rows: Rows) -> Iterable[str]:
        return [
            f"{labels}{found}{stamp if stamped else ''}"
            for labels, details, stamp in rows.details
            if (found := value(details)) is not None
        ]

    return Family(name, kind, text, samples)


def of_transfers(name: str, text: str, value: Callable[[Transfers], int]) -> Family:
    """A counter for each block device."""

    def samples(rows: Rows) -> Iterable[str]:
        return [
            f'{{{r.labels},device="{one.name or one.numbers}"}} {value(one)}{r.stamp}'
            for r in rows
            if r.figures.details is not None
            for one in r.figures.details.transfers
        ]

    return Family(name, "counter", text, samples)


def of_interfaces(direction: str, what: str, value: Callable[[Interface], int]) -> Family:
    """A counter for each network interface of the node and of sandboxes."""

    def samples(rows: Rows) -> Iterable[str]:
        return [f'{{{r.labels},interface="{one.name}"}} {value(one)}{r.stamp}' for r in rows for one in r.interfaces]

    name = f"container_network_{direction}_{what.replace(' ', '_')}_total"
    return Family(name, "counter", f"Network {direction} {what}", samples)


def of_handles(name: str, text: str, value: Callable[[Handles], int | None], *, more: str = "") -> Family:
    """A figure about open files of a container. `more`: a further label."""

    def samples(rows: Rows) -> Iterable[str]:
        return [
            f"{{{r.labels}{more}}} {found}{r.stamp}"
            for r in rows
            if r.handles is not None and (found := value(r.handles)) is not None
        ]

    return Family(name, "gauge", text, samples)


def of_pressure(resource: str) -> tuple[Family, Family]:
    """Time in which all, and in which some, tasks waited for a resource."""
    field = f"{resource}_pressure"

    def stalled(rows: Rows) -> Iterable[str]:
        return [f"{{{r.labels}}} {getattr(r.figures, field).full.total / _SECOND}{r.stamp}" for r in rows]

    def waiting(rows: Rows) -> Iterable[str]:
        return [f"{{{r.labels}}} {getattr(r.figures, field).some.total / _SECOND}{r.stamp}" for r in rows]

    name = f"container_pressure_{resource}"
    return (
        Family(f"{name}_stalled_seconds_total", "counter", f"PSI full time, {resource}", stalled),
        Family(f"{name}_waiting_seconds_total", "counter", f"PSI some time, {resource}", waiting),
    )


def _cpu_usage(rows: Rows) -> Iterable[str]:
    return [f'{{{r.labels},cpu="total"}} {r.figures.cpu / _SECOND}{r.stamp}' for r in rows if r.figures.cpu]


def _failures(rows: Rows) -> Iterable[str]:
    return [
        f'{{{row.labels},failure_type="{kind}",scope="{scope}"}} {count}{row.stamp}'
        for row in rows
        if (memory := row.figures.memory) is not None
        for scope in ("container", "hierarchy")
        for kind, count in (("pgfault", memory.faults), ("pgmajfault", memory.major_faults))
    ]


def _block_usage(rows: Rows) -> Iterable[str]:
    for row in rows:
        for one in row.figures.details.transfers if row.figures.details is not None else ():
            major, _, minor = one.numbers.partition(":")
            device = f'device="{one.name or one.numbers}",major="{major}",minor="{minor}"'
            for operation, size in (("Read", one.read_bytes), ("Write", one.written_bytes)):
                yield f'{{{row.labels},{device},operation="{operation}"}} {size}{row.stamp}'


def _last_seen(rows: Rows) -> Iterable[str]:
    return [f"{{{r.labels}}} {r.figures.taken_at // _SECOND}{r.stamp}" for r in rows]


def _start(rows: Rows) -> Iterable[str]:
    return [f"{{{r.labels}}} {r.started}" for r in rows if r.started is not None]


def _processes(rows: Rows) -> Iterable[str]:
    return [f"{{{r.labels}}} {len(r.figures.pids)}{r.stamp}" for r in rows if r.figures.pids is not None]


def _nothing(rows: Rows) -> Iterable[str]:
    return [f"{{{r.labels}}} 0{r.stamp}" for r in rows]


def _no_task(rows: Rows) -> Iterable[str]:
    return [f'{{{r.labels},state="{state}"}} 0{r.stamp}' for r in rows for state in _STATES]


def _limit(name: str, text: str, value: Callable[[MemoryFigures], int | None]) -> Family:
    """A memory limit; 0 is none."""

    def samples(rows: Rows) -> Iterable[str]:
        return [f"{labels}{value(memory) or 0}" for labels, memory, _ in rows.memory]

    return Family(name, "gauge", text, samples)


def _with_quota(value: Callable[[Details], float]) -> Callable[[Details], float | None]:
    return lambda details: value(details) if details.limits.quota else None


def families(*, psi: bool) -> list[Family]:
    """All of them by name. `psi`: gate KubeletPSI."""
    found = [
        Family("container_blkio_device_usage_total", "counter", "Block I/O bytes", _block_usage),
        Family("container_cpu_usage_seconds_total", "counter", "CPU seconds", _cpu_usage),
        of_details("container_cpu_user_seconds_total", "User CPU seconds", lambda d: d.user / _SECOND, "counter"),
        of_details("container_cpu_system_seconds_total", "System CPU seconds", lambda d: d.system / _SECOND, "counter"),
        of_details("container_cpu_cfs_periods_total", "CFS periods", _with_quota(lambda d: d.periods), "counter"),
        of_details(
            "container_cpu_cfs_throttled_periods_total",
            "Throttled periods",
            _with_quota(lambda d: d.throttled_periods),
            "counter",
        ),
        of_details(
            "container_cpu_cfs_throttled_seconds_total",
            "Throttled time",
            _with_quota(lambda d: d.throttled / _SECOND),
            "counter",
        ),
        Family("container_cpu_load_average_10s", "gauge", "Load average, not counted", _nothing),
        Family("container_cpu_load_d_average_10s", "gauge", "Load average of what cannot be stopped", _nothing),
        Family("container_tasks_state", "gauge", "Tasks by state, not counted", _no_task),
        of_memory("container_memory_cache", "Page cache", lambda m: m.cache),
        of_memory("container_memory_rss", "RSS", lambda m: m.rss),
        of_memory("container_memory_mapped_file", "Mapped files", lambda m: m.mapped_file),
        of_memory("container_memory_swap", "Swap use", lambda m: m.swap),
        of_memory("container_memory_usage_bytes", "Memory use with cache", lambda m: m.usage),
        of_memory("container_memory_working_set_bytes", "Memory use without inactive files", lambda m: m.working_set),
        of_memory("container_memory_total_active_file_bytes", "Active file pages", lambda m: m.active_file),
        of_memory("container_memory_total_inactive_file_bytes", "Inactive file pages", lambda m: m.inactive_file),
        of_details("container_memory_kernel_usage", "Kernel memory", lambda d: d.kernel_memory),
        of_details("container_memory_failcnt", "Limit hits", lambda d: d.limit_hits, "counter"),
        of_details("container_memory_max_usage_bytes", "Peak use", lambda d: d.max_usage),
        Family("container_memory_failures_total", "counter", "Page faults", _failures),
        of_details(
            "container_oom_events_total", "Processes killed for lack of memory", lambda d: d.oom_kills, "counter"
        ),
        of_transfers("container_fs_reads_bytes_total", "Bytes read", lambda t: t.read_bytes),
        of_transfers("container_fs_reads_total", "Reads", lambda t: t.reads),
        of_transfers("container_fs_writes_bytes_total", "Bytes written", lambda t: t.written_bytes),
        of_transfers("container_fs_writes_total", "Writes", lambda t: t.writes),
        of_interfaces("receive", "bytes", lambda i: i.rx_bytes),
        of_interfaces("receive", "packets", lambda i: i.rx_packets),
        of_interfaces("receive", "packets dropped", lambda i: i.rx_dropped),
        of_interfaces("receive", "errors", lambda i: i.rx_errors),
        of_interfaces("transmit", "bytes", lambda i: i.tx_bytes),
        of_interfaces("transmit", "packets", lambda i: i.tx_packets),
        of_interfaces("transmit", "packets dropped", lambda i: i.tx_dropped),
        of_interfaces("transmit", "errors", lambda i: i.tx_errors),
        Family("container_processes", "gauge", "Processes", _processes),
        of_handles("container_file_descriptors", "Open files", lambda h: h.files),
        of_handles("container_sockets", "Open sockets", lambda h: h.sockets),
        of_handles(
            "container_ulimits_soft",
            "Soft limits of the first process",
            lambda h: h.limit,
            more=',ulimit="max_open_files"',
        ),
        of_details("container_threads", "Threads", lambda d: d.threads),
        of_details("container_threads_max", "Thread limit, 0 for none", lambda d: d.limits.threads),
        Family("container_last_seen", "gauge", "Time of the reading", _last_seen),
        Family("container_start_time_seconds", "gauge", "Start time", _start),
        of_details("container_spec_cpu_period", "CFS period, 0 for none", lambda d: d.limits.period, stamped=False),
        of_details("container_spec_cpu_quota", "CFS quota", lambda d: d.limits.quota or None, stamped=False),
        of_details("container_spec_cpu_shares", "CPU shares, 0 for none", lambda d: d.limits.shares, stamped=False),
        _limit("container_spec_memory_limit_bytes", "Memory limit, 0 for none", lambda m: m.limit),
        _limit("container_spec_memory_swap_limit_bytes", "Swap limit, 0 for none", lambda m: m.swap_limit),
        of_details(
            "container_spec_memory_reservation_limit_bytes",
            "Soft memory limit, 0 for none",
            lambda d: d.limits.soft_memory,
            stamped=False,
        ),
    ]
    if psi:
        found.extend(family for resource in ("cpu", "memory", "io") for family in of_pressure(resource))
    return sorted(found, key=lambda family: family.name)
