"""What `glasslet images` shows, over the fake runtime: what would go, and nothing does."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from glasslet.answers.images import ImagesAnswer
from glasslet.cli.images_command import images_text
from glasslet.concurrency.clock import LoopClock
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeUnavailable
from glasslet.runtime.garbage.inventory import GarbageInventory
from tests.component.images.test_image_garbage import Node as ImageNode
from tests.component.runtime.test_garbage import WEB
from tests.component.runtime.test_garbage import Node as ContainerNode

pytestmark = pytest.mark.looptime


def inventory(images: ImageNode, folder: Path) -> GarbageInventory:
    containers = ContainerNode(folder).collector
    return GarbageInventory(images=images.collector, containers=containers, clock=LoopClock())


def places(answer: ImagesAnswer) -> dict[str, int]:
    return {row.name.removeprefix("r.example/").removesuffix(":1"): row.place for row in answer.images}


async def test_images_are_listed_in_the_order_in_which_they_would_go(tmp_path: Path) -> None:
    node = ImageNode(others=540)
    await node.used_in_turn()
    node.users = ["old"]
    answer = await inventory(node, tmp_path)()
    assert places(answer) == {"middle": 1, "new": 2, "old": 0}
    (used,) = (row for row in answer.images if row.users)
    assert (used.used_by, used.stays) == (("default/web/main",), "in use")
    assert node.left() == ["old", "middle", "new"]


async def test_the_order_is_that_of_the_removal(tmp_path: Path) -> None:
    node = ImageNode(others=700)
    await node.used_in_turn()
    expected = [name for name, _ in sorted(places(await inventory(node, tmp_path)()).items(), key=lambda one: one[1])]
    await node.collector.collect()
    assert node.left() == expected[len(expected) - len(node.left()) :]


async def test_pinned_and_new_images_stay_and_say_so(tmp_path: Path) -> None:
    node = ImageNode(minimum_age=timedelta(minutes=2))
    pinned = node.runtime.images["r.example/old:1"]
    node.runtime.images["r.example/old:1"] = replace(pinned, pinned=True)
    why = {row.name: row.stays for row in (await inventory(node, tmp_path)()).images}
    assert why["r.example/old:1"] == "pinned: the runtime wants to keep it"
    assert why["r.example/new:1"] == "unused, and seen too short a time ago: may go in 2 min (imageMinimumGCAge)"


async def test_an_image_that_a_pod_names_stays_before_its_container_exists(tmp_path: Path) -> None:
    node = ImageNode()
    node.named = ["r.example/new:1"]
    why = {row.name: row.stays for row in (await inventory(node, tmp_path)()).images}
    assert why["r.example/new:1"] == "wanted by a pod, or the image of sandboxes"


async def test_the_disk_says_what_the_next_collection_frees(tmp_path: Path) -> None:
    disk = (await inventory(ImageNode(others=600), tmp_path)()).disk
    assert disk is not None
    assert (disk.percent, disk.to_free) == (90, 100)


async def test_dead_containers_say_when_they_go(tmp_path: Path) -> None:
    node = ContainerNode(tmp_path)
    old, last = await node.crashing_pod(deaths=2)
    observing = asyncio.create_task(node.observed.run())
    await node.observed.synced.wait()
    shown = GarbageInventory(images=ImageNode().collector, containers=node.collector, clock=LoopClock())
    found = {row.id: row.when for row in (await shown()).dead_containers}
    assert found == {
        old: "goes at the next collection, within a minute",
        last: "stays while its pod does: its log and status",
    }
    node.workers.ended.add(WEB)
    await asyncio.sleep(3)
    assert {row.id: row.when for row in (await shown()).dead_containers}[last] == "goes when the node is short of disk"
    assert node.containers() == sorted([old, last])
    observing.cancel()
    await asyncio.gather(observing, return_exceptions=True)


async def test_a_runtime_that_does_not_answer_is_a_problem_and_no_error(tmp_path: Path) -> None:
    node = ImageNode()
    node.runtime.fail(Verb.LIST_IMAGES, RuntimeUnavailable("ListImages", "connection refused"))
    answer = await inventory(node, tmp_path)()
    assert answer.problem.startswith("the runtime does not list its images: ")


async def test_the_table_numbers_what_goes(tmp_path: Path) -> None:
    node = ImageNode(others=540)
    await node.used_in_turn()
    node.users = ["old"]
    text = images_text(await inventory(node, tmp_path)(), LoopClock().now(), dead=False)
    lines = [line.split()[:2] for line in text.splitlines() if "r.example" in line]
    assert lines == [["1", "r.example/middle:1"], ["2", "r.example/new:1"], ["-", "r.example/old:1"]]
    assert text.startswith("disk of images: 84 % of 1000 bytes full, 160 bytes free; a collection begins at 85 %")
