"""Volumes with the kernel's own mounts, in threads: needs root."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.exchange.volume import SubPath
from glasslet.host.files.layout import RootLayout
from glasslet.host.files.removal import remove_empty, remove_tree
from glasslet.host.mounts import syscalls as mounts
from glasslet.host.mounts.syscalls import Mounts
from glasslet.host.threads import HostThreads
from glasslet.volumes.errors import VolumeNotReady
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.types.empty_dir import EmptyDir
from tests.builders.podspec import pod_of
from tests.fakes.claims import NO_CLAIMS
from tests.fakes.waits import WaitLog
from tests.skips import on_purpose

REF = PodRef("default", "web", PodUID("uid-1"))


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A root directory below which nothing stays mounted."""
    mounts, path = Mounts(), Path(os.path.realpath(tmp_path))
    probe = path / "probe"
    probe.mkdir()
    try:
        mounts.mount_tmpfs(str(probe))
        mounts.unmount(str(probe))
    except PermissionError:
        pytest.skip("mounting needs root with CAP_SYS_ADMIN")
    yield path
    for entry in mounts.table().at_or_below(str(path)):
        mounts.unmount(entry.path)


def manager(root: Path) -> VolumeManager:
    layout, mounts, threads = RootLayout(str(root)), Mounts(), HostThreads(recorder=WaitLog())
    empty_dir = EmptyDir(
        root=layout,
        mounts=mounts,
        threads=threads,
        pod_memory_limit=lambda _: 0,
        allocatable_memory=lambda: 1 << 30,
    )
    return VolumeManager(root=layout, claims=NO_CLAIMS, plugins={"emptyDir": empty_dir}, mounts=mounts, threads=threads)


def mounted(root: Path) -> list[str]:
    return [os.path.relpath(entry.path, root) for entry in Mounts().table().at_or_below(str(root))]


MEMORY = pod_of(
    {"volumeMounts": [{"name": "mem", "mountPath": "/m"}]},
    volumes=[{"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
)
DISK = pod_of({"volumeMounts": [{"name": "data", "mountPath": "/d"}]}, volumes=[{"name": "data", "emptyDir": {}}])


async def test_memory_holds_its_size_and_goes_with_its_pod(root: Path) -> None:
    path = (await manager(root).prepare(MEMORY))["mem"].path
    facts = os.statvfs(path)
    assert facts.f_blocks * facts.f_frsize == 1 << 20
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o1777
    Path(path, "file").write_text("x")
    assert (await manager(root).prepare(MEMORY))["mem"].path == path
    assert Path(path, "file").read_text() == "x"
    await manager(root).tear_down(REF)
    assert mounted(root) == []
    assert not Path(path).exists()


def test_memory_is_kept_out_of_swap_where_the_kernel_can(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # behaviours.md §16: "tmpfs volumes are mounted noswap where the kernel allows it"
    asked: list[list[str]] = []
    real = mounts._mount

    def of_an_old_kernel(source: str, target: str, fs_type: str, flags: int, options: list[str]) -> None:
        asked.append(options)
        if "noswap" in options:
            raise OSError(errno.EINVAL, "Invalid argument", target)
        real(source, target, fs_type, flags, options)

    monkeypatch.setattr(mounts, "_mount", of_an_old_kernel)
    root.mkdir(exist_ok=True)
    one = Mounts()
    assert not one.keeps_out_of_swap(str(root))
    assert mounted(root) == []
    one.mount_tmpfs(str(root), size=4096)
    one.unmount(str(root))
    assert asked == [["noswap"], [], ["size=4096"]]


async def test_huge_pages_have_the_size_that_was_asked_for(root: Path) -> None:
    if "hugetlbfs" not in Path("/proc/filesystems").read_text():
        pytest.skip(on_purpose("this kernel has no huge pages"))
    mount = {"volumeMounts": [{"name": "big", "mountPath": "/b"}], "resources": {"requests": {"hugepages-2Mi": "2Mi"}}}
    pod = pod_of(mount, volumes=[{"name": "big", "emptyDir": {"medium": "HugePages-2Mi"}}])
    path = (await manager(root).prepare(pod))["big"].path
    assert os.statvfs(path).f_bsize == 2 << 20
    await manager(root).prepare(pod)
    assert len(mounted(root)) == 1
    await manager(root).tear_down(REF)
    assert mounted(root) == []


async def test_memory_in_use_stays_until_it_is_free(root: Path) -> None:
    path = (await manager(root).prepare(MEMORY))["mem"].path
    with open(f"{path}/held", "w") as held:
        with pytest.raises(VolumeNotReady, match="Device or resource busy"):
            await manager(root).tear_down(REF)
        held.write("still there")
    await manager(root).tear_down(REF)
    assert mounted(root) == []


async def test_a_mount_left_inside_a_volume_is_never_deleted_through(root: Path) -> None:
    path = Path((await manager(root).prepare(DISK))["data"].path)
    precious = root / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    (path / "bound").mkdir()
    Mounts().bind(str(precious), str(path / "bound"))
    with pytest.raises(VolumeNotReady, match="still mounted"):
        await manager(root).tear_down(REF)
    assert (precious / "file").read_text() == "x"


async def test_a_part_shows_the_same_files_and_stays_when_names_are_swapped(root: Path) -> None:
    # behaviours.md §22: "the source is bound through the opened descriptor; no later updates are seen"
    volumes = await manager(root).prepare(DISK)
    volume = Path(volumes["data"].path)
    (volume / "conf").write_text("inside")
    (volume / "dir").mkdir()
    wanted = (SubPath(index=0, volume="data", path="dir"), SubPath(index=1, volume="data", path="conf"))
    bound = await manager(root).bind_sub_paths(REF, "main", volumes, wanted)
    (volume / "dir" / "file").write_text("x")
    assert Path(bound[0], "file").read_text() == "x"
    assert Path(bound[1]).read_text() == "inside"
    (volume / "dir").rename(volume / "gone")
    (volume / "dir").symlink_to("/etc")
    assert Path(bound[0], "file").read_text() == "x"


async def test_a_part_is_bound_once_and_anew_when_it_was_replaced(root: Path) -> None:
    volumes = await manager(root).prepare(DISK)
    volume = Path(volumes["data"].path)
    wanted = (SubPath(index=0, volume="data", path="conf"),)
    (volume / "conf").write_text("old")
    for _ in range(2):
        bound = await manager(root).bind_sub_paths(REF, "main", volumes, wanted)
        assert len(mounted(root)) == 1
    (volume / "conf").unlink()
    (volume / "conf").write_text("new")
    await manager(root).bind_sub_paths(REF, "main", volumes, wanted)
    assert Path(bound[0]).read_text() == "new"
    assert len(mounted(root)) == 1
    await manager(root).tear_down(REF)
    assert mounted(root) == []
    assert not volume.exists()


ODD_NAMES = {
    "carriage-return": b"a\rb",
    "vertical-tab": b"a\vb",
    "form-feed": b"a\fb",
    "file-separator": b"a\x1cb",
    "group-separator": b"a\x1db",
    "record-separator": b"a\x1eb",
    "unit-separator": b"a\x1fb",
    "next-line": "a\x85b".encode(),
    "line-separator": "a\u2028b".encode(),
    "newline": b"a\nb",
    "tab-and-blank": b"a\t b",
    "backslash": b"a\\012b",
    "no-text": b"a\xff\xfeb",
}


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES.keys())
async def test_a_part_with_an_odd_name_is_mounted_once_and_leaves_nothing(root: Path, name: bytes) -> None:
    volumes = await manager(root).prepare(DISK)
    volume = Path(volumes["data"].path)
    wanted = (SubPath(index=0, volume="data", path=os.fsdecode(name)),)
    for _ in range(3):
        bound = await manager(root).bind_sub_paths(REF, "main", volumes, wanted)
        assert os.path.samefile(bound[0], os.path.join(volume, os.fsdecode(name)))
        assert len(mounted(root)) == 1
    await manager(root).tear_down(REF)
    assert mounted(root) == []
    assert not volume.exists()


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES.keys())
async def test_a_mount_with_an_odd_name_in_a_volume_keeps_the_hosts_files(root: Path, name: bytes) -> None:
    # As a container with Bidirectional propagation makes it.
    path = Path((await manager(root).prepare(DISK))["data"].path)
    precious = root / os.fsdecode(name)
    precious.mkdir()
    (precious / "file").write_text("x")
    inside = path / os.fsdecode(name)
    inside.mkdir()
    Mounts().bind(str(precious), str(inside))
    with pytest.raises(VolumeNotReady, match="still mounted"):
        await manager(root).tear_down(REF)
    assert (precious / "file").read_text() == "x"


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_a_mount_of_the_same_device_made_after_the_table_was_read_is_not_removed_through(root: Path, kind: str) -> None:
    precious, volume = root / "precious", root / "volume"
    (volume / "inner").mkdir(parents=True)
    if kind == "directory":
        precious.mkdir()
        (precious / "file").write_text("x")
        (volume / "inner" / "bound").mkdir()
    else:
        precious.write_text("x")
        (volume / "inner" / "bound").touch()
    before = Mounts().table()
    Mounts().bind(str(precious), str(volume / "inner" / "bound"))
    with pytest.raises(OSError, match=r"another file system is mounted here|Device or resource busy"):
        remove_tree(str(volume), before)
    assert [path.read_text() for path in (precious, precious / "file") if path.is_file()] == ["x"]


def test_empty_directories_on_something_mounted_stay(root: Path) -> None:
    place = root / "volume" / "mounted"
    place.mkdir(parents=True)
    Mounts().mount_tmpfs(str(place))
    (place / "empty").mkdir()
    assert remove_empty(str(root / "volume")) is False
    assert (place / "empty").is_dir()


async def test_a_new_part_of_memory_with_a_group_has_the_bits_of_its_volume(root: Path) -> None:
    # As the Go kubelet: `dgtrwxrwxrwx`.
    pod = pod_of(
        {"volumeMounts": [{"name": "mem", "mountPath": "/m", "subPath": "new"}]},
        volumes=[{"name": "mem", "emptyDir": {"medium": "Memory"}}],
        securityContext={"fsGroup": 123},
    )
    volumes = await manager(root).prepare(pod)
    wanted = (SubPath(index=0, volume="mem", path="new/deeper"),)
    bound = await manager(root).bind_sub_paths(REF, "main", volumes, wanted)
    for path in (volumes["mem"].path, bound[0]):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o3777
    await manager(root).tear_down(REF)
    assert mounted(root) == []


async def test_the_folder_of_a_pod_with_users_of_its_own_is_counted_by_its_file_system_from_the_beginning(
    tmp_path: Path,
) -> None:
    counted: list[str] = []
    threads = HostThreads(recorder=WaitLog())
    layout, mounts = RootLayout(str(tmp_path)), Mounts()
    empty_dir = EmptyDir(
        root=layout,
        mounts=mounts,
        threads=threads,
        pod_memory_limit=lambda _: 0,
        allocatable_memory=lambda: 0,
        count=counted.append,
    )
    made = VolumeManager(root=layout, claims=NO_CLAIMS, plugins={"emptyDir": empty_dir}, mounts=mounts, threads=threads)
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/d"}]}
    for uid, users in (("of-the-host", {}), ("own", {"hostUsers": False})):
        pod = pod_of(mount, meta={"name": uid, "uid": uid}, volumes=[{"name": "data", "emptyDir": {}}], **users)
        path = (await made.prepare(pod))["data"].path
        # Of a folder that is there already, files would be missing from the count.
        await made.prepare(pod)
    assert counted == [path]
