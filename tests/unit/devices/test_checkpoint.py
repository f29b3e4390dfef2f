"""The file of the Go kubelet, read and written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from glasslet.devices.allocations import Allocation, Owner
from glasslet.devices.checkpoint import BadCheckpoint, KnownDevices, decode, encode
from glasslet.devices.checkpoint_file import CheckpointFile
from glasslet.record.store import Record
from tests.fakes.inline_threads import InlineThreads

DATA = Path(__file__).parents[2] / "data" / "device_checkpoints"
WRITTEN_BY_GO = sorted(DATA.glob("*.json"))
"""Made by `checkpoint.New(...).MarshalCheckpoint()` of the Go kubelet v1.34.10."""


@pytest.mark.parametrize("file", WRITTEN_BY_GO, ids=lambda file: file.stem)
def test_a_file_of_the_go_kubelet_is_trusted(file: Path) -> None:
    # behaviours.md §29: "Device text: `(checkpoint.checkpointData){PodDeviceEntries:..."
    decode(file.read_bytes())


def test_what_the_go_kubelet_wrote_is_understood() -> None:
    found = decode((DATA / "two_pods.json").read_bytes())
    assert found.allocations[Owner("u-1", "main", "example.com/a")] == Allocation(
        by_node={-1: ("d1",)}, response=b"\n\x05\n\x01A\x12\x01b"
    )
    assert found.allocations[Owner("u-2", "init", "example.com/b")].ids == {"n0", "n1", "n2"}
    assert found.registered == ("example.com/a", "example.com/b", "example.com/none")


def test_what_is_written_has_the_go_kubelets_form() -> None:
    # behaviours.md §24: "Checkpoint kubelet_internal_checkpoint, JSON: ..."
    content = encode(KnownDevices((), {}))
    assert json.loads(content) == json.loads((DATA / "empty.json").read_bytes())


def test_what_is_written_is_read_again() -> None:
    known = {
        Owner("u", "main", "example.com/gpu"): Allocation(by_node={0: ("b",), 1: ("a", "b")}, response=b"\x00\xff"),
        Owner("u", "side", "example.com/gpu"): Allocation(by_node={-1: ("ü",)}),
    }
    found = decode(encode(KnownDevices(tuple(known.items()), {"example.com/gpu": frozenset("ba")})))
    assert found.allocations == known
    assert found.registered == ("example.com/gpu",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"Data":{"PodDeviceEntries":7}}',
        b'{"Data":{},"Checksum":1}',
        b"\xff\xfe",
        (DATA / "two_pods.json").read_bytes().replace(b"u-1", b"u-9"),
    ],
)
def test_a_file_that_cannot_be_trusted_is_refused(content: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        decode(content)


def test_an_allocation_does_not_show_what_the_plugin_gave() -> None:
    assert "secret" not in repr(Allocation(by_node={-1: ("a",)}, response=b"secret"))


@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", ["pipe", "link", "gigabytes"])
async def test_a_plugin_that_replaces_the_file_holds_nothing_up(tmp_path: Path, kind: str) -> None:
    file = CheckpointFile(folder=str(tmp_path), threads=InlineThreads(), recorder=Record())
    match kind:
        case "pipe":
            os.mkfifo(file.path)
        case "link":
            os.symlink("/dev/zero", file.path)
        case _:
            Path(file.path).touch()
            os.truncate(file.path, 8 << 30)
    assert await file.read() is None
    assert not file.exists()
