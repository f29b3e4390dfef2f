"""Images and writable layers on one disk, on two, and how the node's figures and eviction see it."""

from __future__ import annotations

import pytest

from glasslet.host.files.layout import LogLayout, RootLayout
from glasslet.record.store import Record
from glasslet.runtime.model import FilesystemUsage, RuntimeDisks
from glasslet.runtime.usage import ContainerUsage
from glasslet.stats.disks import storage
from glasslet.stats.disks.disk_usage import FilesystemFigures
from glasslet.stats.disks.storage import PodFolders, Storage, StorageFigures
from glasslet.stats.pages.summary import _usage
from tests.builders.record import ManualClock
from tests.fakes.inline_threads import InlineThreads

DEVICES = {"/root": 1, "/images": 2, "/layers": 1, "/third": 3}


def usage(mountpoint: str) -> tuple[FilesystemUsage, ...]:
    return (FilesystemUsage(mountpoint=mountpoint, used_bytes=7, inodes_used=1),)


class Runtime:
    """A runtime that reports these mount points, "" for none."""

    def __init__(self, images: str, layers: str) -> None:
        self._told = RuntimeDisks(images=usage(images) if images else (), containers=usage(layers) if layers else ())

    async def list_container_stats(self) -> tuple[ContainerUsage, ...]:
        return ()

    async def disks(self) -> RuntimeDisks:
        return self._told


@pytest.fixture(autouse=True)
def devices(monkeypatch: pytest.MonkeyPatch) -> None:
    def filesystem(path: str) -> FilesystemFigures:
        if path not in DEVICES:
            raise FileNotFoundError(path)
        device = DEVICES[path]
        return FilesystemFigures(
            taken_at=0, capacity=100 * device, available=50, used=50, inodes=9, inodes_free=5, device=device
        )

    monkeypatch.setattr(storage, "filesystem", filesystem)


async def figures(images: str, layers: str, *, separate: bool = True) -> StorageFigures:
    runtime = Runtime(images, layers)
    made = Storage(
        runtime=runtime,
        images=runtime,
        folders=PodFolders(RootLayout("/root"), LogLayout(pod_logs_dir="/none")),
        threads=InlineThreads(),
        clock=ManualClock(),
        recorder=Record(),
        separate=separate,
    )
    complete, disks = await made.read([]), await made.of_disks()
    assert (complete.images, complete.containers) == (disks.images, disks.containers)
    return disks


@pytest.mark.parametrize(
    ("images", "layers", "apart"),
    [
        ("/images", "/layers", True),
        ("/images", "/images", False),
        ("/root", "/layers", False),  # two paths of one device
        ("/images", "", False),
        ("/images", "/unreadable", False),
        ("", "/layers", False),
    ],
)
async def test_layers_are_apart_only_on_another_device_than_images(images: str, layers: str, apart: bool) -> None:
    assert ((await figures(images, layers)).containers is not None) is apart


async def test_without_the_gate_layers_count_as_with_the_images() -> None:
    found = await figures("/images", "/layers", separate=False)
    assert found.containers is None
    assert found.layers == found.images


async def test_container_fs_of_the_summary_is_the_disk_of_the_layers() -> None:
    found = await figures("/images", "/layers")
    image_fs, container_fs = _usage(found, found.images), _usage(found, found.layers)
    assert image_fs is not None
    assert container_fs is not None
    assert (image_fs.capacity_bytes, container_fs.capacity_bytes) == (200, 100)
    together = await figures("/images", "/images")
    assert _usage(together, together.images) == _usage(together, together.layers)
