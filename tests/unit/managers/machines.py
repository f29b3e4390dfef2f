"""Machines of regular build, as the tables of the Go kubelet's own answers draw them."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.host.topology import LogicalCPU
from glasslet.managers.cpu_layout import CPULayout


def drawn_machine(shape: Mapping[str, int]) -> CPULayout:
    """`shape`: totals of sockets, nodes, caches, cores; threads of a core; whether siblings have neighbouring
    numbers."""
    cores, threads = shape["cores"], shape["threads"]
    cpus = [_cpu(shape, core, thread) for core in range(cores) for thread in range(threads)]
    return CPULayout(cpus)


def _cpu(shape: Mapping[str, int], core: int, thread: int) -> LogicalCPU:
    cores, threads = shape["cores"], shape["threads"]
    beside = shape["neighbours"]
    return LogicalCPU(
        id=core * threads + thread if beside else core + thread * cores,
        core=core * threads if beside else core,
        socket=core * shape["sockets"] // cores,
        node=core * shape["nodes"] // cores,
        cache=core * shape["caches"] // cores,
    )
