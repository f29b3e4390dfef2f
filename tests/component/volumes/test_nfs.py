"""nfs volumes with a program in the place of mount(8), and the kernel's mounts: needs root."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.host.files.layout import RootLayout
from glasslet.host.mounts.syscalls import Mounts
from glasslet.host.threads import HostThreads
from glasslet.volumes.errors import VolumeNotReady
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.types.nfs import NFSVolume
from tests.builders.podspec import pod_of
from tests.fakes.claims import NO_CLAIMS
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")

REF = PodRef("default", "web", PodUID("uid-1"))
PLACE = "pods/uid-1/volumes/kubernetes.io~nfs/share"


class Node:
    """A node whose `mount` is a script; `asked` are its arguments, a line for each call."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        self.real = shutil.which("mount")
        monkeypatch.setenv("PATH", str(self.bin))
        layout, mounts, threads = RootLayout(str(root / "kubelet")), Mounts(), HostThreads(recorder=WaitLog())
        self.mounts = mounts
        plugins = {"nfs": NFSVolume(root=layout, mounts=mounts, threads=threads)}
        self.volumes = VolumeManager(root=layout, claims=NO_CLAIMS, plugins=plugins, mounts=mounts, threads=threads)

    def program(self, then: str) -> None:
        script = f'#!/bin/sh\necho "$*" >> {self.root}/asked\nfor target; do :; done\n{then}\n'
        program = self.bin / "mount"
        program.write_text(script)
        program.chmod(0o755)

    def asked(self) -> list[str]:
        return (self.root / "asked").read_text().splitlines()

    def mounted(self) -> list[str]:
        below = str(self.root / "kubelet")
        return [os.path.relpath(entry.path, below) for entry in self.mounts.table().at_or_below(below)]


@pytest.fixture
async def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    made = Node(Path(os.path.realpath(tmp_path)), monkeypatch)
    yield made
    for entry in made.mounts.table().at_or_below(str(made.root)):
        made.mounts.unmount(entry.path)


def sharing(**source: Any) -> Pod:
    nfs = {"server": "10.0.0.1", "path": "/export"} | source
    return pod_of({"volumeMounts": [{"name": "share", "mountPath": "/s"}]}, volumes=[{"name": "share", "nfs": nfs}])


async def test_a_share_is_mounted_once_and_taken_off(node: Node) -> None:
    node.program(f'{node.real} -t tmpfs tmpfs "$target"')
    path = (await node.volumes.prepare(sharing()))["share"].path
    await node.volumes.prepare(sharing())
    assert node.asked() == [f"-t nfs 10.0.0.1:/export {path}"]
    assert node.mounted() == [PLACE]
    await node.volumes.tear_down(REF)
    assert node.mounted() == []
    assert not Path(path).exists()


async def test_a_read_only_share_is_asked_for_as_such(node: Node) -> None:
    node.program(f'{node.real} -t tmpfs tmpfs "$target"')
    found = (await node.volumes.prepare(sharing(server="fd00::1", readOnly=True)))["share"]
    assert node.asked() == [f"-t nfs -o ro [fd00::1]:/export {found.path}"]
    assert found.read_only


async def test_a_missing_helper_is_told_in_the_words_of_the_program(node: Node) -> None:
    words = "you might need a /sbin/mount.<type> helper program."
    node.program(f'echo "mount: bad option; {words}"; exit 32')
    with pytest.raises(VolumeNotReady) as caught:
        await node.volumes.prepare(sharing())
    assert caught.value.message == (
        'MountVolume.SetUp failed for volume "share" : mount failed: exit status 32\n'
        "Mounting command: mount\n"
        f"Mounting arguments: -t nfs 10.0.0.1:/export {node.root}/kubelet/{PLACE}\n"
        f"Output: mount: bad option; {words}\n"
    )
    assert not (node.root / "kubelet" / PLACE).exists()


async def test_a_node_without_the_program_says_so(node: Node) -> None:
    with pytest.raises(VolumeNotReady, match=r'exec: "mount": executable file not found in \$PATH'):
        await node.volumes.prepare(sharing())


async def test_what_a_failed_program_left_mounted_is_taken_off(node: Node) -> None:
    node.program(f'{node.real} -t tmpfs tmpfs "$target"; exit 1')
    with pytest.raises(VolumeNotReady, match="exit status 1"):
        await node.volumes.prepare(sharing())
    assert node.mounted() == []


@pytest.mark.parametrize("server", ["--bind", ""])
async def test_a_server_that_would_be_an_option_is_refused(node: Node, server: str) -> None:
    node.program("exit 1")
    with pytest.raises(VolumeNotReady, match=f"nfs server '{server}' is not a host name or address"):
        await node.volumes.prepare(sharing(server=server))
    assert not (node.root / "asked").exists()


class DeadServer(Mounts):
    """The kernel waits for the server in every unmount, until one is forced."""

    def __init__(self) -> None:
        super().__init__()
        self.forced = threading.Event()

    def unmount(self, target: str, *, force: bool = False) -> None:
        if force:
            self.forced.set()
            super().unmount(target)
        else:
            self.forced.wait()


async def test_a_server_that_does_not_answer_is_left_by_force(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.program(f'{node.real} -t tmpfs tmpfs "$target"')
    path = (await node.volumes.prepare(sharing()))["share"].path
    monkeypatch.setattr("glasslet.volumes.types.nfs.FORCE_AFTER", 0.2)
    waits = WaitLog()
    layout, mounts = RootLayout(str(node.root / "kubelet")), DeadServer()
    share = NFSVolume(root=layout, mounts=mounts, threads=HostThreads(recorder=waits))
    await share.tear_down("uid-1", "share")
    assert mounts.forced.is_set()
    assert node.mounted() == []
    assert not Path(path).exists()
