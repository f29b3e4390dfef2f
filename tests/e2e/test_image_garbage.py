"""The image collector of a whole agent on a containerd of its own."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.fakes.agent import NODE, Agent, agent_on, busybox_pod
from tests.fakes.containerd import (
    BUSYBOX,
    CONFIGURED,
    NAMED_USER,
    PAUSE,
    PrivateContainerd,
    import_test_images,
    missing_requirement,
)

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]


@pytest.fixture
def own_containerd() -> Iterator[PrivateContainerd]:
    """One whose images may go: other tests need theirs."""
    if missing := missing_requirement():
        pytest.skip(f"REAL CONTAINERD TESTS NOT RUN: {missing}")
    private = PrivateContainerd(Path(tempfile.mkdtemp(prefix="glt-")))
    try:
        private.start()
        import_test_images(private)
        yield private
    finally:
        private.stop()
        shutil.rmtree(private.folder, ignore_errors=True)


def collect_everything_unused(agent: Agent) -> None:
    """Changes the configuration for the next start: any disk is too full, and no image too young."""
    path = agent.folder / "config.yaml"
    limits = {"imageGCHighThresholdPercent": 1, "imageGCLowThresholdPercent": 0, "imageMinimumGCAge": "-1s"}
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **limits}))


async def test_unused_images_go_and_used_ones_stay(own_containerd: PrivateContainerd, tmp_path: Path) -> None:
    with agent_on(own_containerd, tmp_path / "agent") as agent:
        agent.put(busybox_pod("web"))
        await agent.wait_for(lambda rows: rows.get("web", {}).get("ready") == 1, seconds=120)
        shown = {row["name"]: row for row in (await agent.ask("/glass/v1/node/images"))["images"]}
        assert shown[BUSYBOX]["stays"] == "in use"
        assert shown[BUSYBOX]["usedBy"] == [f"default/web-{NODE}/main"]
        assert shown[CONFIGURED]["stays"].startswith("unused, and seen too short a time ago")
        agent.terminate()
        collect_everything_unused(agent)
        agent.start()
        await agent.wait_until_ready(120)
        deadline = time.monotonic() + 120
        while {CONFIGURED, NAMED_USER} & own_containerd.image_names():
            assert time.monotonic() < deadline, agent.tail_of_log()
            await asyncio.sleep(0.1)
        # behaviours.md §8: "skips used by any container (dead too), pinned"; this containerd does not pin its own.
        assert {BUSYBOX, PAUSE} <= own_containerd.image_names()
        async with asyncio.timeout(120):
            while f"image {CONFIGURED} removed" not in str(await agent.ask("/glass/v1/agent/trace")):
                await asyncio.sleep(0.1)
        rows = await agent.wait_for(lambda rows: "web" in rows)
        assert rows["web"]["restarts"] == 0
