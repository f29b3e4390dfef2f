"""Sizes of container logs, as `/metrics` shows them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.host.files.layout import LogLayout
from glasslet.stats.disks.log_usage import PAUSE, LogUsage
from glasslet.telemetry.metrics.catalog import Metrics
from tests.fakes.inline_threads import InlineThreads

pytestmark = pytest.mark.looptime

WEB = PodRef("default", "web", PodUID("uid-1"))


def log(layout: LogLayout, container: str, size: int) -> None:
    folder = Path(layout.container(WEB, container))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0.log").write_bytes(b"x" * size)


async def test_a_scrape_shows_what_the_one_before_had_measured(tmp_path: Path) -> None:
    layout = LogLayout(pod_logs_dir=str(tmp_path))
    log(layout, "main", 8192)
    threads = InlineThreads()
    usage = LogUsage(containers=lambda: [(WEB, "main"), (WEB, "never-wrote")], logs=layout, threads=threads)
    metrics = Metrics()
    metrics.count_log_sizes(usage.figures)
    task = asyncio.create_task(usage.run())
    await asyncio.sleep(100)
    labels = 'uid="uid-1",namespace="default",pod="web"'
    family = "kubelet_container_log_filesystem_used_bytes"
    assert f'{family}{{{labels},container="main"}} 8192\n' not in metrics.registry.expose().decode()
    await asyncio.sleep(0.1)
    log(layout, "main", 20480)
    page = metrics.registry.expose().decode()
    assert f'{family}{{{labels},container="main"}} 8192\n' in page
    assert f'{family}{{{labels},container="never-wrote"}} 0\n' in page
    await asyncio.sleep(PAUSE)
    assert f'{family}{{{labels},container="main"}} 20480\n' in metrics.registry.expose().decode()
    task.cancel()


async def test_logs_on_a_disk_that_hangs_keep_their_last_sizes(tmp_path: Path) -> None:
    layout = LogLayout(pod_logs_dir=str(tmp_path))
    log(layout, "main", 4096)
    threads = InlineThreads()
    usage = LogUsage(containers=lambda: [(WEB, "main")], logs=layout, threads=threads)
    await usage.measure()
    threads.stuck.add("sizes of container logs")
    await usage.measure()
    assert usage.figures() == {(WEB, "main"): 4096}
