"""Sets of CPUs or NUMA nodes as text: ascending ranges, `0-3,5`, "" for none."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.config.validation.enforcement import parse_cpus

CPUs = frozenset[int]
NO_CPUS: CPUs = frozenset()


def cpu_text(cpus: Iterable[int]) -> str:
    """The set as text."""
    parts: list[str] = []
    first = last = -2
    for cpu in (*sorted(cpus), -1):
        if cpu == last + 1 and cpu != -1:
            last = cpu
            continue
        if first >= 0:
            parts.append(str(first) if first == last else f"{first}-{last}")
        first = last = cpu
    return ",".join(parts)


def read_cpu_text(text: str) -> CPUs:
    """The set of a text. Raises ValueError."""
    if (found := parse_cpus(text)) is None:
        raise ValueError(f'"{text}" is no list of CPUs such as 0-3,5')
    return found
