"""Out-of-memory kills as events and in the record; the kernel's log as it really is."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.host.kernel_log import KMSG, kernel_messages
from glasslet.node.oom_watch import AGAIN, OomWatch
from glasslet.record.events import ChangeObserved
from glasslet.record.store import Record
from tests.fakes.background import in_background
from tests.unit.node.test_oom import BEGIN, OF_GROUP, OF_SYSTEM, a_pod


class Node:
    def __init__(self, *lines: str) -> None:
        self.lines: list[str] = list(lines)
        self.error: OSError | None = None
        self.events: list[tuple[str, ...]] = []
        self.record = Record(clock=LoopClock())
        self.watch = OomWatch(
            pods=lambda: [a_pod()],
            node_events=lambda *words: self.events.append(("node", *words)),
            pod_events=lambda pod, *words: self.events.append((str(pod), *words)),
            recorder=self.record,
            messages=self.messages,
        )

    async def messages(self) -> AsyncGenerator[str, None]:
        if self.error is not None:
            raise self.error
        for line in self.lines:
            yield line
        await asyncio.Event().wait()


@pytest.mark.looptime
async def test_a_kill_in_a_container_is_an_event_of_its_pod_and_stays_in_its_record() -> None:
    node = Node(BEGIN, OF_GROUP)
    async with in_background(node.watch.run):
        await asyncio.sleep(1)
    words = "The kernel killed process sh (pid 22974) of container main: the container reached its memory limit"
    assert node.events == [("default/web", "Warning", "OOMKilling", words)]
    record = node.record.of("1234")
    assert record is not None
    assert [event.new for event in record.events if isinstance(event, ChangeObserved)] == [words]


@pytest.mark.looptime
async def test_a_kill_of_the_system_is_an_event_of_the_node_too() -> None:
    node = Node(BEGIN, OF_SYSTEM)
    async with in_background(node.watch.run):
        await asyncio.sleep(1)
    assert node.events == [
        ("node", "Warning", "SystemOOM", "System OOM encountered, victim process: java, pid: 77"),
        (
            "default/web",
            "Warning",
            "OOMKilling",
            "The kernel killed process java (pid 77) of container main: the node ran out of memory",
        ),
    ]


@pytest.mark.looptime
async def test_a_log_that_cannot_be_read_is_a_finding_until_it_can() -> None:
    node = Node(BEGIN, OF_SYSTEM)
    node.error = OSError(1, "Operation not permitted")
    async with in_background(node.watch.run):
        await asyncio.sleep(1)
        assert node.record.findings() == [
            "out-of-memory kills are not reported: the kernel's log cannot be read: Operation not permitted"
        ]
        node.error = None
        await asyncio.sleep(AGAIN)
        assert node.record.findings() == []
        assert len(node.events) == 2


async def test_the_log_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        await anext(kernel_messages(str(tmp_path / "none")))


@pytest.mark.skipif(not os.access(KMSG, os.R_OK | os.W_OK), reason="KERNEL LOG NOT READ: needs root and /dev/kmsg")
async def test_of_the_kernel_s_real_log_only_what_the_kernel_says_from_now_on_is_read() -> None:
    mark = secrets.token_hex(8)
    messages = kernel_messages()
    first = asyncio.ensure_future(anext(messages))
    try:
        await asyncio.sleep(0)
        Path(KMSG).write_text(f"<12>glasslet test {mark}\n")
        done, _ = await asyncio.wait({first}, timeout=0.3)
        assert not done or mark not in first.result()
    finally:
        first.cancel()
        await asyncio.wait({first})
        await messages.aclose()
