"""Pulls in bytes: a whole agent, a real containerd, and a registry that stops in the middle of a layer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_image_pulls import pod_of_image
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd, unmount_below
from tests.fakes.registry import Registry

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

MIB = 1 << 20


@pytest.fixture
def registry(tmp_path: Path, containerd: PrivateContainerd) -> Iterator[Registry]:
    with Registry(tmp_path) as made:
        yield made
        containerd.remove_images(made.host)


@pytest.fixture
def agent(tmp_path: Path, containerd: PrivateContainerd, registry: Registry) -> Iterator[Agent]:
    made = Agent(tmp_path / "agent", containerd, serializeImagePulls=False, maxParallelImagePulls=2)
    made.start()
    try:
        yield made
    finally:
        registry.let_go()
        made.kill()
        containerd.remove_all_pods()
        unmount_below(made.folder)


async def pulls(agent: Agent, *names: str) -> dict[str, dict[str, Any]]:
    """The pull of each pod, once all have bytes or a place in the queue."""

    def known(rows: dict[str, dict[str, Any]]) -> bool:
        found = [rows.get(name, {}).get("pull") or {} for name in names]
        return all(pull.get("done") or pull.get("queuedBehind") for pull in found)

    rows = await agent.wait_for(known, seconds=60, every=0.2)
    return {name: rows[name]["pull"] for name in names}


async def test_each_pull_shows_the_bytes_of_its_own_layers_and_the_third_its_place(
    agent: Agent, registry: Registry
) -> None:
    for name, size in (("one", 12), ("two", 20), ("three", 1)):
        registry.add(f"public/{name}", "1", marker=name, filler=size * MIB)
    registry.hold(after=5 * MIB + 1000)
    agent.put(pod_of_image("one", registry.name("public/one", "1")))
    agent.put(pod_of_image("two", registry.name("public/two", "1")))
    await pulls(agent, "one", "two")
    agent.put(pod_of_image("three", registry.name("public/three", "1")))
    found = await pulls(agent, "one", "two", "three")
    # containerd writes a layer in whole MiB.
    assert {name: found[name]["done"] // MIB for name in ("one", "two")} == {"one": 5, "two": 5}
    assert 12 * MIB < found["one"]["total"] < 16 * MIB
    assert 20 * MIB < found["two"]["total"] < 24 * MIB
    assert [layer["open"] for layer in found["one"]["layers"]] == [True]
    assert found["three"]["queuedBehind"] == 2

    why = await agent.ask(f"/glass/v1/pods/default/one-{NODE}/why")
    assert "which is being pulled: 5 MiB of 1" in why["sentence"]
    row = (await agent.pods())["three"]
    assert row["now"].endswith("queued behind 2 pulls")

    registry.let_go()
    rows = await agent.wait_for(lambda rows: all(rows.get(n, {}).get("ready") for n in found), seconds=60)
    assert [rows[name].get("pull") for name in found] == [None, None, None]
