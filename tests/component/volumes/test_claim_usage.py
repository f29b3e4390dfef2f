"""Figures of volumes behind claims, and how they are shown."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.exchange.volume import ReportedFigures
from glasslet.stats.disks.claim_usage import ClaimedVolume, ClaimUsage
from glasslet.telemetry.metrics.catalog import Metrics
from tests.fakes.inline_threads import InlineThreads

pytestmark = pytest.mark.looptime

WEB = PodRef("default", "web", PodUID("uid-1"))
DB = PodRef("default", "db", PodUID("uid-2"))
NAMES = {"capacity_bytes", "available_bytes", "used_bytes", "inodes", "inodes_free", "inodes_used"}


def volume(pod: PodRef, claim: str, path: str) -> ClaimedVolume:
    return ClaimedVolume(pod=pod, claim=claim, path=path)


async def shown(usage: ClaimUsage) -> list[str]:
    """Lines of the page after one round."""
    metrics = Metrics(node_name="node")
    metrics.count_claims(usage.figures)
    task = asyncio.create_task(usage.run())
    await asyncio.sleep(1)
    task.cancel()
    return [
        line for line in metrics.registry.expose().decode().splitlines() if line.startswith("kubelet_volume_stats_")
    ]


async def test_a_claim_is_shown_once_whoever_shares_it(tmp_path: Path) -> None:
    both = [volume(WEB, "data", str(tmp_path)), volume(DB, "data", str(tmp_path))]
    lines = await shown(ClaimUsage(volumes=lambda: both, threads=InlineThreads(), period=60))
    labels = '{namespace="default",persistentvolumeclaim="data"}'
    assert {line.split(" ")[0] for line in lines} == {f"kubelet_volume_stats_{name}{labels}" for name in NAMES}


async def test_a_dead_server_has_no_figures_and_the_others_have(tmp_path: Path) -> None:
    threads = InlineThreads()
    threads.stuck.add("claim dead")
    mixed = [volume(WEB, "dead", "/mnt"), volume(WEB, "data", str(tmp_path)), volume(WEB, "gone", "/does/not/exist")]
    lines = await shown(ClaimUsage(volumes=lambda: mixed, threads=threads, period=60))
    assert len(lines) == len(NAMES)


@pytest.mark.parametrize("period", [0, -1])
async def test_nothing_is_measured_where_that_is_switched_off(tmp_path: Path, period: float) -> None:
    one = [volume(WEB, "data", str(tmp_path))]
    assert await shown(ClaimUsage(volumes=lambda: one, threads=InlineThreads(), period=period)) == []


async def test_what_a_driver_says_of_its_volume_is_shown(tmp_path: Path) -> None:
    said = ReportedFigures(taken_at=1, capacity=100, available=40, used=60, inodes=9, inodes_free=5, inodes_used=4)
    usage = ClaimUsage(volumes=tuple, threads=InlineThreads(), period=60, told=lambda: [(("default", "data"), said)])
    lines = await shown(usage)
    labels = '{namespace="default",persistentvolumeclaim="data"}'
    assert f"kubelet_volume_stats_used_bytes{labels} 60" in lines
    assert f"kubelet_volume_stats_inodes_used{labels} 4" in lines
