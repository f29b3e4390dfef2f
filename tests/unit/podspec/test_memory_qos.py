"""Memory of containers that is protected and throttled."""

from __future__ import annotations

import mmap
from typing import Any

import pytest

from glasslet.podspec.resources import container_resources
from tests.builders.podspec import node_facts, pod_of

MI = 2**20
PAGE = mmap.PAGESIZE


def unified(resources: dict[str, dict[str, str]], **node: Any) -> dict[str, str]:
    pod = pod_of({"resources": resources})
    facts = node_facts(**({"memory_throttling_factor": 0.9, "memory_for_pods": 1000 * MI} | node))
    return dict(container_resources(pod, pod.spec.containers[0], facts).unified)


@pytest.mark.parametrize(
    ("request_", "limit", "high"),
    [
        ("100Mi", "200Mi", 190 * MI // PAGE * PAGE),
        ("100Mi", "", 910 * MI // PAGE * PAGE),
        ("", "200Mi", 180 * MI // PAGE * PAGE),
    ],
)
def test_memory_is_throttled_before_it_reaches_its_limit(request_: str, limit: str, high: int) -> None:
    # behaviours.md §16: "memory.high = floor((request + factor*(limit or allocatable - request))/page)*page."
    resources = {"requests": {"memory": request_} if request_ else {}, "limits": {"memory": limit} if limit else {}}
    found = unified(resources)
    assert found["memory.high"] == str(high)
    assert found.get("memory.min") == (str(100 * MI) if request_ else None)


def test_memory_that_is_requested_to_its_limit_is_protected_only() -> None:
    found = unified({"requests": {"memory": "100Mi"}, "limits": {"memory": "100Mi"}})
    assert found == {"memory.min": str(100 * MI)}


def test_nothing_is_set_while_the_gate_is_off() -> None:
    assert unified({"requests": {"memory": "100Mi"}}, memory_throttling_factor=None) == {}
