"""220 malformed manifests dropped on a running agent: it stays, each is one finding, the healthy pod never notices."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from tests.fakes.agent import Agent, agent_on, busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.unit.sources.test_fuzz import HAND_WRITTEN, SEEDS, mutated

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(180)]


def healthz(agent: Agent) -> int:
    """The answer of the health port."""
    with urllib.request.urlopen(f"http://127.0.0.1:{agent.healthz_port}/healthz", timeout=60) as answer:
        return int(answer.status)


def told(agent: Agent) -> list[str]:
    """Findings about manifests."""
    log = agent.log.read_text(errors="replace")
    return [line for line in log.splitlines() if '"finding"' in line and str(agent.manifests) in line]


def drop_malformed(agent: Agent, folder: Path) -> int:
    """All of them, under names of their own; how many."""
    for seed in SEEDS:
        agent.put(mutated(seed).encode("utf-8", "surrogatepass"), name=f"mutated-{seed}.yaml")
    for make in HAND_WRITTEN:
        staged = folder / make.__name__
        staged.mkdir()
        make(staged)
        (made,) = staged.iterdir()
        made.rename(agent.manifests / f"{make.__name__}{made.suffix}")
    return len(SEEDS) + len(HAND_WRITTEN)


async def test_malformed_manifests_are_one_finding_each_and_hurt_nobody(
    containerd: PrivateContainerd, tmp_path: Path
) -> None:
    with agent_on(containerd, tmp_path / "agent") as agent:
        await agent.wait_until_ready()
        agent.put(busybox_pod("healthy"))
        before = await agent.wait_for(lambda rows: rows.get("healthy", {}).get("ready") == 1)
        count = drop_malformed(agent, tmp_path)
        agent.put(busybox_pod("later"))
        after = await agent.wait_for(lambda rows: rows.get("later", {}).get("ready") == 1)
        await agent.wait_for(lambda _: len(told(agent)) >= count)
        assert len(told(agent)) == count
        assert sorted(after) == ["healthy", "later"]
        assert (after["healthy"]["uid"], after["healthy"]["restarts"]) == (before["healthy"]["uid"], 0)
        assert healthz(agent) == 200
        assert agent.exit_code() is None
