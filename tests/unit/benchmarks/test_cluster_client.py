"""What a benchmark's watch notes, and when."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from benchmarks.cluster_client import DELETED, FAILED, READY, Watch, running


def event(kind: str, name: str, **status: Any) -> bytes:
    return json.dumps({"type": kind, "object": {"metadata": {"name": name}, "status": status}}).encode()


def ready(status: str) -> list[dict[str, str]]:
    return [{"type": "Ready", "status": status}]


async def test_fact_is_known_from_the_first_event_that_shows_it() -> None:
    watch = Watch()
    watch.told(event("ADDED", "web", phase="Pending", conditions=ready("False")))
    asked = asyncio.ensure_future(watch.first("web", READY))
    await asyncio.sleep(0)
    assert not asked.done()
    watch.told(event("MODIFIED", "web", phase="Running", conditions=ready("True")))
    first = await asked
    watch.told(event("MODIFIED", "web", phase="Running", conditions=ready("True")))
    assert await watch.all_of(["web"], READY) == [first]


async def test_restart_failure_and_deletion_are_facts() -> None:
    watch = Watch()
    container = {"restartCount": 1, "containerID": "containerd://1", "state": {"running": {}}}
    watch.told(event("MODIFIED", "web", phase="Running", containerStatuses=[container]))
    assert watch.objects["web"].status.container_statuses[0].container_id == "containerd://1"
    watch.told(event("MODIFIED", "web", phase="Failed"))
    watch.told(event("DELETED", "web"))
    for fact in (running(1), FAILED, DELETED):
        await watch.all_of(["web"], fact)
    assert not watch.objects


async def test_who_is_missing_is_named() -> None:
    watch = Watch()
    watch.told(event("MODIFIED", "here", conditions=ready("True")))
    with pytest.raises(TimeoutError, match=r"1 not ready within 0 s: \['gone'\]"):
        await watch.all_of(["here", "gone"], READY, seconds=0.0)


async def test_error_of_the_server_is_no_event() -> None:
    line = json.dumps({"type": "ERROR", "object": {"metadata": {}, "code": 410}}).encode()
    with pytest.raises(ConnectionError, match="410"):
        Watch().told(line)


async def test_end_of_the_watch_ends_the_waiting() -> None:
    watch = Watch()
    asked = asyncio.ensure_future(watch.first("web", READY))
    await asyncio.sleep(0)
    watch.ended(EOFError("closed"))
    with pytest.raises(ConnectionError, match="the watch ended"):
        await asked
