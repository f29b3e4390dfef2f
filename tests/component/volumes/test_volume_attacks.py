"""Pods that try to make the agent write outside of their folder, on the kernel's own file systems: needs root."""

from __future__ import annotations

import itertools
import os
import socket
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.exchange.volume import MountedVolume, SubPath
from glasslet.host.files.removal import remove_own_tree
from glasslet.host.mounts.sub_path import bind_sub_path, release_sub_paths
from glasslet.host.mounts.syscalls import Mounts
from glasslet.volumes.errors import VolumeNotReady
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.ownership import give_to_group
from tests.builders.podspec import pod_of
from tests.component.volume_world import Machine, Steps

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")

ROUNDS = 150
REF = PodRef("default", "web", PodUID("uid-1"))


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    made = Machine(Path(os.path.realpath(tmp_path)) / "machine")
    yield made
    made.clean()


@pytest.fixture
async def volumes(machine: Machine) -> VolumeManager:
    return machine.volumes(Steps())


def using(source: dict[str, Any], name: str = "v", **mount: Any) -> Pod:
    """A pod with one volume."""
    return pod_of({"volumeMounts": [{"name": name, "mountPath": "/v"} | mount]}, volumes=[{"name": name, **source}])


def outside(machine: Machine) -> set[str]:
    """Everything on the machine that is not in the pod's folder."""
    own = str(machine.kubelet / "pods" / "uid-1")
    found: set[str] = set()
    for folder, names, files in os.walk(machine.root.parent):
        found.update(path for name in (*names, *files) if not (path := f"{folder}/{name}").startswith(own))
    return found - {str(machine.kubelet), str(machine.kubelet / "pods")}


@contextmanager
def swapping(place: Path, inside: Path, away: Path) -> Iterator[None]:
    """`place` is by turns the directory `inside` and a link to `away`, as fast as it goes."""
    over = threading.Event()
    link = place.with_name("link")
    link.symlink_to(away)

    def swap() -> None:
        while not over.is_set():
            with suppress(OSError):
                place.rename(inside)
                link.rename(place)
                place.rename(link)
                inside.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_no_swap_of_a_directory_for_a_link_leads_a_sub_path_out_of_its_volume(machine: Machine) -> None:
    # behaviours.md §22: "must stay inside the volume, `..` and symlinks out are refused; ... the source is bound
    # through the opened descriptor"
    volume, away = machine.root / "volume", machine.root / "away"
    (volume / "dir").mkdir(parents=True)
    (away / "sub").mkdir(parents=True)
    (away / "sub" / "secret").write_text("of the node")
    before = sorted(path.name for path in away.rglob("*"))
    mounts, parts, bound = Mounts(), machine.root / "parts", 0
    with swapping(volume / "dir", volume / "was", away):
        for number in itertools.count():
            if number >= ROUNDS and bound:
                break
            target = parts / "main" / str(number % 5)
            path = "dir/sub" if number % 2 else "dir/new/deep"
            try:
                bind_sub_path(mounts, volume=str(volume), path=path, target=str(target))
            except OSError:
                continue
            bound += 1
            assert not (target / "secret").exists()
            assert os.stat(target).st_ino != os.stat(away / "sub").st_ino
            mounts.unmount(str(target))
    release_sub_paths(mounts, str(parts))
    assert sorted(path.name for path in away.rglob("*")) == before
    assert bound > 0


def of_the_node(away: Path) -> list[tuple[str, int, int]]:
    """Names, groups and modes of what must stay as it is."""
    return sorted((path.name, path.stat().st_gid, path.stat().st_mode) for path in (away, *away.rglob("*")))


def test_no_swap_gives_files_of_the_node_to_the_group_of_a_pod(machine: Machine) -> None:
    volume, away = machine.root / "volume", machine.root / "away"
    for folder in (volume / "dir", away):
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "file").touch(0o600)
    before = of_the_node(away)
    with swapping(volume / "dir", volume / "was", away):
        for _ in range(ROUNDS):
            give_to_group(str(volume), 4711)
    assert of_the_node(away) == before
    give_to_group(str(volume), 4711)
    assert {path.lstat().st_gid for path in volume.rglob("*")} == {4711}


def test_no_swap_leads_the_removal_of_a_volume_to_files_of_the_node(machine: Machine) -> None:
    away = machine.root / "away"
    (away / "sub").mkdir(parents=True)
    (away / "sub" / "file").touch()
    before = of_the_node(away)
    for number in range(ROUNDS):
        volume = machine.root / f"volume-{number}"
        (volume / "dir" / "sub").mkdir(parents=True)
        (volume / "dir" / "sub" / "file").touch()
        with swapping(volume / "dir", volume / "was", away), suppress(OSError):
            remove_own_tree(str(volume))
    assert of_the_node(away) == before


UPWARD = "../../../../../evil"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMap": {"name": "data", "items": [{"key": "key", "path": UPWARD}]}}, "must not contain '..'"),
        ({"secret": {"secretName": "data", "items": [{"key": "key", "path": "a/../../b"}]}}, "must not contain '..'"),
        ({"configMap": {"name": "data", "items": [{"key": "key", "path": "/etc/evil"}]}}, "must be relative path"),
        ({"configMap": {"name": "data", "items": [{"key": "key", "path": "..data"}]}}, "must not start with '..'"),
        (
            {"projected": {"sources": [{"secret": {"name": "data", "items": [{"key": "key", "path": UPWARD}]}}]}},
            "must not contain '..'",
        ),
        (
            {
                "projected": {
                    "sources": [
                        {"downwardAPI": {"items": [{"path": UPWARD, "fieldRef": {"fieldPath": "metadata.name"}}]}}
                    ]
                }
            },
            "must not contain '..'",
        ),
        ({"hostPath": {"path": "/etc/../evil", "type": "DirectoryOrCreate"}}, "must not contain '..'"),
        ({"hostPath": {"path": "evil", "type": "DirectoryOrCreate"}}, "must be an absolute path"),
        ({"configMap": {"name": "data", "items": [{"key": "key", "path": "x" * 256}]}}, "255 characters"),
        ({"configMap": {"name": "data", "items": [{"key": "key", "path": "a/" * 2048 + "b"}]}}, "4096 characters"),
        ({"configMap": {"name": "data", "items": [{"key": "key", "path": "b/" * 2047 + "b"}]}}, "File name too long"),
        ({"hostPath": {"path": "/" + "a" * 5000, "type": "File"}}, "is not a file"),
    ],
)
async def test_a_path_that_would_lead_elsewhere_is_one_clear_error(
    machine: Machine, volumes: VolumeManager, source: dict[str, Any], message: str
) -> None:
    # behaviours.md §22: "Paths: relative, at most 4096 characters, 255 per element, no element `..`, not beginning
    # with `..`."
    before = outside(machine)
    with pytest.raises(VolumeNotReady) as caught:
        await volumes.prepare(using(source))
    assert caught.value.message.startswith('MountVolume.SetUp failed for volume "v" : ')
    assert message in caught.value.message
    assert caught.value.message.count("MountVolume") == 1
    assert outside(machine) == before


@pytest.mark.parametrize("name", ["..", "../../../evil", "a/b", "", "x" * 300, "with\0zero"])
@pytest.mark.parametrize(
    "source", [{"emptyDir": {}}, {"configMap": {"name": "data"}}, {"secret": {"secretName": "data"}}]
)
async def test_a_volume_of_a_name_that_is_no_file_name_is_refused(
    machine: Machine, volumes: VolumeManager, name: str, source: dict[str, Any]
) -> None:
    before = outside(machine)
    with pytest.raises(VolumeNotReady, match="cannot be a file name"):
        await volumes.prepare(using(source, name))
    assert outside(machine) == before


async def test_mount_paths_of_a_container_make_nothing_outside_of_its_volumes(
    machine: Machine, volumes: VolumeManager
) -> None:
    # A mount inside another one needs a directory there, which is made on the node.
    mounts = [{"name": "v", "mountPath": ".."}, {"name": "v", "mountPath": f"../{UPWARD}", "subPath": "key"}]
    pod = pod_of({"volumeMounts": mounts}, volumes=[{"name": "v", "configMap": {"name": "data"}}])
    before = outside(machine)
    found = (await volumes.prepare(pod))["v"]
    assert outside(machine) == before
    assert Path(found.path, "key").read_text() == "value"


@pytest.mark.parametrize("path", ["out", "out/sub", "up/x", "absolute", "loop"])
async def test_links_out_of_a_volume_show_nothing(
    machine: Machine, volumes: VolumeManager, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = await volumes.prepare(using({"emptyDir": {}}))
    volume = Path(found["v"].path)
    (volume / "out").symlink_to("../../../..")
    (volume / "up").symlink_to("a/../../..")
    (volume / "absolute").symlink_to(machine.disk)
    (volume / "loop").symlink_to("loop")
    before = outside(machine)
    wanted = (SubPath(index=0, volume="v", path=path),)
    assert await volumes.bind_sub_paths(REF, "main", found, wanted) == {}
    assert outside(machine) == before
    assert [record.message for record in caplog.records] == ["subPath could not be prepared"]


async def test_a_sub_path_as_long_as_it_may_be_is_shown_and_removed(machine: Machine, volumes: VolumeManager) -> None:
    found = await volumes.prepare(using({"emptyDir": {}}))
    path = "/".join(["d" * 200] * 20)
    bound = await volumes.bind_sub_paths(REF, "main", found, (SubPath(index=0, volume="v", path=path),))
    Path(bound[0], "file").write_text("deep")
    await volumes.tear_down(REF)
    assert machine.mounted() == []
    assert not Path(found["v"].path).exists()


async def test_a_file_a_thousand_directories_deep_is_shown_looked_at_again_and_removed(
    machine: Machine, volumes: VolumeManager
) -> None:
    path = "b/" * 1500 + "b"
    pod = using({"configMap": {"name": "data", "items": [{"key": "key", "path": path}]}})
    found = await volumes.prepare(pod)
    shown = os.listdir(found["v"].path)
    await volumes.refresh(pod)
    assert os.listdir(found["v"].path) == shown
    machine.data.content["key"] = b"changed"
    await volumes.refresh(pod)
    assert Path(found["v"].path, path).read_text() == "changed"
    await volumes.tear_down(REF)
    assert not Path(found["v"].path).exists()


async def test_a_secret_of_a_megabyte_is_shown_whole(machine: Machine, volumes: VolumeManager) -> None:
    machine.data.content["big"] = os.urandom(1 << 20)
    found = await volumes.prepare(using({"secret": {"secretName": "data"}}))
    assert Path(found["v"].path, "big").read_bytes() == machine.data.content["big"]
    await volumes.tear_down(REF)
    assert machine.mounted() == []


@pytest.mark.parametrize(
    ("kind", "fits"), [("Socket", "socket"), ("CharDevice", "device"), ("File", ""), ("FileOrCreate", "")]
)
async def test_sockets_pipes_and_devices_of_the_node_are_looked_at_and_never_opened(
    machine: Machine, volumes: VolumeManager, kind: str, fits: str
) -> None:
    there = {name: machine.root / name for name in ("socket", "pipe", "device")}
    with socket.socket(socket.AF_UNIX) as server:
        # Names of sockets are short; those of test directories are not.
        folder = os.open(machine.root, os.O_PATH)
        server.bind(f"/proc/self/fd/{folder}/socket")
        os.close(folder)
        os.mkfifo(there["pipe"])
        os.mknod(there["device"], stat.S_IFCHR | 0o600, os.makedev(1, 3))
        for name, path in there.items():
            pod = using({"hostPath": {"path": str(path), "type": kind}})
            if name == fits:
                assert (await volumes.prepare(pod))["v"] == MountedVolume(name="v", path=str(path))
            else:
                with pytest.raises(VolumeNotReady, match=f"hostPath type check failed: {path} is not a"):
                    await volumes.prepare(pod)


async def test_a_volume_that_became_a_link_is_not_followed_at_its_end(machine: Machine, volumes: VolumeManager) -> None:
    found = await volumes.prepare(using({"emptyDir": {}}))
    path = Path(found["v"].path)
    path.rmdir()
    path.symlink_to(machine.disk)
    await volumes.tear_down(REF)
    assert (machine.disk / "precious").read_text() == "kept"
    assert not path.is_symlink()
