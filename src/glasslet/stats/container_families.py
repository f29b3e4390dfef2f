"""The metrics of /metrics/cadvisor that every control group has: name, kind, meaning, and where the value is.

Left out: what the Go kubelet only ever shows as 0 (load averages, task states), block I/O beyond bytes and operations
(cgroup v2 has no more), and figures of file systems but those of the node. Source: metrics.md, "/metrics/cadvisor".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from glasslet.stats.figures import CgroupFigures, Details, MemoryFigures, Transfers
from glasslet.stats.handles import Handles
from glasslet.stats.network import Interface

_SECOND = 1_000_000_000


class Row(Struct, frozen=True, kw_only=True):
    """One control group in the page. `labels`: pairs without braces; `started`: Unix time."""

    labels: str
    figures: CgroupFigures
    started: float | None
    stamp: str
    """The time of the reading as it stands behind a value: a space and milliseconds."""
    interfaces: tuple[Interface, ...] = ()
    handles: Handles | None = None


class Family(Struct, frozen=True):
    """`samples` gives what follows the name, for one row."""

    name: str
    kind: str
    text: str
    samples: Callable[[Row], Iterator[str]]


def of_memory(name: str, text: str, value: Callable[[MemoryFigures], int], kind: str = "gauge") -> Family:
    """A figure that every group with a memory controller has."""

    def samples(row: Row) -> Iterator[str]:
        if row.figures.memory is not None:
            yield f"{{{row.labels}}} {value(row.figures.memory)}{row.stamp}"

    return Family(name, kind, text, samples)


def of_details(
    name: str,
    text: str,
    value: Callable[[Details], float | None],
    kind: str = "gauge",
    *,
    more: str = "",
    stamped: bool = True,
) -> Family:
    """A figure out of the details; None leaves it out. `more`: a further label."""

    def samples(row: Row) -> Iterator[str]:
        details = row.figures.details
        if details is not None and (found := value(details)) is not None:
            yield f"{{{row.labels}{more}}} {found}{row.stamp if stamped else ''}"

    return Family(name, kind, text, samples)


def of_transfers(name: str, text: str, value: Callable[[Transfers], int]) -> Family:
    """A counter for each block device; its name stands in the device label already."""

    def samples(row: Row) -> Iterator[str]:
        if row.figures.details is not None:
            for one in row.figures.details.transfers:
                yield f'{{{row.labels},device="{one.name or one.numbers}"}} {value(one)}{row.stamp}'

    return Family(name, "counter", text, samples)


def of_interfaces(direction: str, what: str, value: Callable[[Interface], int]) -> Family:
    """A counter for each network interface of the node and of sandboxes."""

    def samples(row: Row) -> Iterator[str]:
        for one in row.interfaces:
            yield f'{{{row.labels},interface="{one.name}"}} {value(one)}{row.stamp}'

    name = f"container_network_{direction}_{what.replace(' ', '_')}_total"
    return Family(name, "counter", f"Network {direction} {what}", samples)


def of_handles(name: str, text: str, value: Callable[[Handles], int | None], *, more: str = "") -> Family:
    """A figure about open files of a container."""

    def samples(row: Row) -> Iterator[str]:
        if row.handles is not None and (found := value(row.handles)) is not None:
            yield f"{{{row.labels}{more}}} {found}{row.stamp}"

    return Family(name, "gauge", text, samples)


def of_pressure(resource: str) -> tuple[Family, Family]:
    """Time in which all, and in which some, tasks waited for a resource."""

    def stalled(row: Row) -> Iterator[str]:
        pressure = getattr(row.figures, f"{resource}_pressure")
        yield f"{{{row.labels}}} {pressure.full.total / _SECOND}{row.stamp}"

    def waiting(row: Row) -> Iterator[str]:
        pressure = getattr(row.figures, f"{resource}_pressure")
        yield f"{{{row.labels}}} {pressure.some.total / _SECOND}{row.stamp}"

    name = f"container_pressure_{resource}"
    return (
        Family(f"{name}_stalled_seconds_total", "counter", f"PSI full time, {resource}", stalled),
        Family(f"{name}_waiting_seconds_total", "counter", f"PSI some time, {resource}", waiting),
    )


def _cpu_usage(row: Row) -> Iterator[str]:
    if row.figures.cpu:
        yield f'{{{row.labels},cpu="total"}} {row.figures.cpu / _SECOND}{row.stamp}'


def _failures(row: Row) -> Iterator[str]:
    if (memory := row.figures.memory) is not None:
        for scope in ("container", "hierarchy"):
            for kind, count in (("pgfault", memory.faults), ("pgmajfault", memory.major_faults)):
                yield f'{{{row.labels},failure_type="{kind}",scope="{scope}"}} {count}{row.stamp}'


def _block_usage(row: Row) -> Iterator[str]:
    for one in row.figures.details.transfers if row.figures.details is not None else ():
        major, _, minor = one.numbers.partition(":")
        device = f'device="{one.name or one.numbers}",major="{major}",minor="{minor}"'
        for operation, size in (("Read", one.read_bytes), ("Write", one.written_bytes)):
            yield f'{{{row.labels},{device},operation="{operation}"}} {size}{row.stamp}'


def _last_seen(row: Row) -> Iterator[str]:
    yield f"{{{row.labels}}} {row.figures.taken_at // _SECOND}{row.stamp}"


def _start(row: Row) -> Iterator[str]:
    if row.started is not None:
        yield f"{{{row.labels}}} {row.started}"


def _processes(row: Row) -> Iterator[str]:
    if row.figures.processes is not None:
        yield f"{{{row.labels}}} {row.figures.processes}{row.stamp}"


def _limit(name: str, text: str, value: Callable[[MemoryFigures], int | None]) -> Family:
    """A memory limit; 0 is none."""

    def samples(row: Row) -> Iterator[str]:
        if row.figures.memory is not None:
            yield f"{{{row.labels}}} {value(row.figures.memory) or 0}"

    return Family(name, "gauge", text, samples)


def _with_quota(value: Callable[[Details], float]) -> Callable[[Details], float | None]:
    return lambda details: value(details) if details.quota else None


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
        of_details("container_threads_max", "Thread limit, 0 for none", lambda d: d.threads_max),
        Family("container_last_seen", "gauge", "Time of the reading", _last_seen),
        Family("container_start_time_seconds", "gauge", "Start time", _start),
        of_details("container_spec_cpu_period", "CFS period", lambda d: d.period or None, stamped=False),
        of_details("container_spec_cpu_quota", "CFS quota", lambda d: d.quota or None, stamped=False),
        of_details("container_spec_cpu_shares", "CPU shares", lambda d: d.shares or None, stamped=False),
        _limit("container_spec_memory_limit_bytes", "Memory limit, 0 for none", lambda m: m.limit),
        _limit("container_spec_memory_swap_limit_bytes", "Swap limit, 0 for none", lambda m: m.swap_limit),
        of_details(
            "container_spec_memory_reservation_limit_bytes",
            "Soft memory limit, 0 for none",
            lambda d: d.soft_limit,
            stamped=False,
        ),
    ]
    if psi:
        found.extend(family for resource in ("cpu", "memory", "io") for family in of_pressure(resource))
    return sorted(found, key=lambda family: family.name)
