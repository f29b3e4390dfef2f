"""Troubles of volumes: paths, types, sizes, subPaths, and mounts that are busy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.troubles.table import Plain, Trouble, chosen, each_chosen
from tests.troubles.world import World, standalone_world

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

AREA = "Volumes"
FOR_EVER = "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"


def with_volume(
    name: str, volume: Plain | Callable[[World], Plain], shell: str = FOR_EVER, /, **mount: Any
) -> Callable[[World], Plain]:
    """The manifest of a pod with one volume, mounted at /v."""

    def manifest(world: World) -> Plain:
        found = volume(world) if callable(volume) else volume
        made = busybox_pod(name, shell, volumes=[{"name": "data", **found}])
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/v", **mount}]
        return made

    return manifest


def host_path(name: str, kind: str) -> Callable[[World], Plain]:
    """A path below the world's folder, as a volume of this type."""
    return lambda world: {"hostPath": {"path": str(world.folder / name), "type": kind}}


TROUBLES = (
    Trouble(
        name="host-path-missing",
        made="a hostPath of type Directory does not exist",
        rule=Rule.VOLUME_NOT_READY,
        says=("volume data (hostPath ", "is not a directory"),
        pod=with_volume("host-path-missing", host_path("folder/none", "Directory")),
        quick=True,
    ),
    Trouble(
        name="host-path-file",
        made="a hostPath of type File is a folder",
        rule=Rule.VOLUME_NOT_READY,
        says=("volume data (hostPath ", "is not a file"),
        pod=with_volume("host-path-file", host_path("folder", "File")),
    ),
    Trouble(
        name="host-path-socket",
        made="a hostPath of type Socket does not exist",
        rule=Rule.VOLUME_NOT_READY,
        says=("volume data (hostPath ", "is not a socket"),
        pod=with_volume("host-path-socket", host_path("folder/none.sock", "Socket")),
    ),
    Trouble(
        name="sub-path-escapes",
        made="a subPath leads out of its volume by a symbolic link",
        rule=Rule.CONFIG_ERROR,
        says=("subPath out of volume data cannot be used",),
        pod=with_volume("sub-path-escapes", host_path("folder", "Directory"), subPath="out"),
    ),
    Trouble(
        name="sub-path-env",
        made="a subPathExpr names a variable that does not exist",
        rule=Rule.CONFIG_ERROR,
        says=("its subPathExpr names variable NO_SUCH, which it does not have",),
        pod=with_volume("sub-path-env", {"emptyDir": {}}, subPathExpr="$(NO_SUCH)"),
    ),
    Trouble(
        name="memory-full",
        made="the command fills a memory volume beyond its sizeLimit",
        rule=Rule.CRASH_BACK_OFF,
        says=("exited with code 1", "No space left on device"),
        pod=with_volume(
            "memory-full",
            {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            "dd if=/dev/zero of=/v/file bs=64k count=64 2>&1 | tail -n 3 | grep dd: && exit 1",
        ),
    ),
    Trouble(
        name="read-only-mount",
        made="the command writes to a volume that is mounted read-only",
        rule=Rule.CRASH_BACK_OFF,
        says=("exited with code 1", "Read-only file system"),
        pod=with_volume("read-only-mount", {"emptyDir": {}}, "echo x > /v/file", readOnly=True),
        quick=True,
    ),
    Trouble(
        name="nfs-away",
        made="an nfs server refuses the connection",
        rule=Rule.VOLUME_NOT_READY,
        says=("volume data (nfs 127.0.0.1:/export): mount failed:",),
        pod=with_volume("nfs-away", {"nfs": {"server": "127.0.0.1", "path": "/export"}}),
    ),
    Trouble(
        name="unsupported-type",
        made="a volume of a type that this agent does not support",
        rule=Rule.VOLUME_NOT_READY,
        says=("volume data", "no volume plugin matched (cephfs was removed from Kubernetes)"),
        pod=with_volume("unsupported-type", {"cephfs": {"monitors": ["127.0.0.1:1"]}}),
    ),
)


def prepare(world: World) -> None:
    """The folder that hostPath volumes name."""
    folder = world.folder / "folder"
    folder.mkdir()
    (folder / "out").symlink_to("/etc")


@pytest.fixture(scope="module")
def world(containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with standalone_world(containerd, tmp_path_factory.mktemp("v")) as made:
        prepare(made)
        made.put(*chosen(TROUBLES))
        yield made


@each_chosen(TROUBLES)
def test_a_pod_without_its_volume_gets_the_cause(world: World, trouble: Trouble) -> None:
    world.shows(trouble)
