"""What the node reports once, at the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.node.notices import image_disk_notice, resolver_notice, swap_notice
from glasslet.runtime.model import FilesystemUsage, RuntimeDisks
from tests.fakes.inline_threads import InlineThreads


# behaviours.md §16: "with swap on and no such support: node event PossibleMemoryBackedVolumesOnDisk at start."
@pytest.mark.parametrize(
    ("swap", "kept", "reasons"),
    [(0, False, []), (1 << 30, True, []), (1 << 30, False, ["PossibleMemoryBackedVolumesOnDisk"])],
)
def test_a_node_that_may_swap_secrets_says_so(tmp_path: Path, swap: int, kept: bool, reasons: list[str]) -> None:
    notice = swap_notice(swap, str(tmp_path), lambda folder: kept)
    assert [one.reason for one in (notice,) if one is not None] == reasons
    assert list(tmp_path.iterdir()) == []


def resolver_event(path: str) -> tuple[str, str, str] | None:
    notice = resolver_notice(path, "cluster.local")
    return (notice.type, notice.reason, notice.message) if notice is not None else None


def test_a_resolver_file_that_fits_is_not_worth_an_event(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 192.0.2.1\nsearch example.org\n")
    assert resolver_event(str(file)) is None
    assert resolver_event("") is None


@pytest.mark.parametrize(("searches", "reported"), [(29, False), (30, True)])
def test_more_searches_than_pods_can_have_are_an_event_of_the_node(
    tmp_path: Path, searches: int, reported: bool
) -> None:
    # behaviours.md §20: "At start the host file is checked: unreadable, more than 32 searches (29 with a cluster
    # domain), one above 253 or all above 2048 characters: event CheckLimitsForResolvConf."
    file = tmp_path / "resolv.conf"
    file.write_text(f"search {' '.join(f's{n}.example' for n in range(searches))}\n")
    text = f"Resolv.conf file '{file}' contains search line consisting of more than 29 domains!"
    assert resolver_event(str(file)) == (("Warning", "CheckLimitsForResolvConf", text) if reported else None)


def test_a_resolver_file_that_cannot_be_read_is_an_event_of_the_node(tmp_path: Path) -> None:
    assert resolver_event(str(tmp_path / "none")) == (
        "Warning",
        "CheckLimitsForResolvConf",
        f"open {tmp_path / 'none'}: No such file or directory",
    )


@pytest.mark.parametrize("kind", ["image", "container"])
async def test_a_disk_of_the_runtime_without_capacity_is_told(kind: str) -> None:
    """A file system such as /proc has no blocks."""
    usage = {
        name: FilesystemUsage(mountpoint="/proc" if name == kind else "/", used_bytes=0, inodes_used=0)
        for name in ("image", "container")
    }

    class Images:
        async def disks(self) -> RuntimeDisks:
            return RuntimeDisks(images=(usage["image"],), containers=(usage["container"],))

    notice = await image_disk_notice(Images(), InlineThreads())
    assert notice is not None
    assert (notice.reason, notice.message) == ("InvalidDiskCapacity", f"invalid capacity 0 on {kind} filesystem")
