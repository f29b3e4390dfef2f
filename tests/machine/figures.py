"""The shape of an agent's answers about use: names and labels, without numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
Series = tuple[str, frozenset[str], str]
"""A metric, the names of its labels, and whose it is: the pod's and container's names, or the cgroup."""


def series(page: str, pods: frozenset[str]) -> set[Series]:
    """Of a Prometheus page. Of groups that belong to none of these pods only the root and those above pods are taken:
    others come and go."""
    found = set()
    for line in page.splitlines():
        if (sample := _SAMPLE.match(line)) is not None:
            labels = dict(_LABEL.findall(sample[2] or ""))
            owner = _owner(labels, pods)
            if owner is not None:
                found.add((sample[1], frozenset(labels), owner))
    return found


def _owner(labels: dict[str, str], pods: frozenset[str]) -> str | None:
    if pod := labels.get("pod"):
        kind = (
            "sandbox" if labels.get("container") in ("", "POD") and labels.get("name") else labels.get("container", "")
        )
        return f"{pod}/{kind or 'pod'}" if pod in pods else None
    group = labels.get("id")
    if group is None:
        return "node"
    return group if group in ("/", "/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice") else None


def kinds(page: str) -> dict[str, str]:
    """The type of each metric of a Prometheus page."""
    lines = (line.split() for line in page.splitlines() if line.startswith("# TYPE "))
    return {words[2]: words[3] for words in lines}


def paths(answer: Any, pods: frozenset[str]) -> set[str]:
    """Paths of all values of /stats/summary; lists of named things by their names, pods as far as they are known."""
    return set(_paths(answer, "", pods))


def _paths(value: Any, place: str, pods: frozenset[str]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, f"{place}.{key}", pods)
    elif isinstance(value, list):
        for inner in value:
            name = _name(inner)
            if place != ".pods" or name in pods:
                yield from _paths(inner, f"{place}[{name}]", pods)
    else:
        yield place


def _name(item: Any) -> str:
    return str(item.get("name") or item.get("podRef", {}).get("name", "")) if isinstance(item, dict) else ""
