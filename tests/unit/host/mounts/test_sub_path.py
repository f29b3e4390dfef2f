from __future__ import annotations

import os
from pathlib import Path

import pytest

from glasslet.host.mounts.sub_path import OutsideVolume, bind_sub_path, open_inside, release_sub_paths
from tests.fakes.mounts import FakeMounts


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    path = tmp_path / "volume"
    (path / "dir" / "inner").mkdir(parents=True)
    (path / "file").write_text("x")
    (tmp_path / "secret").mkdir()
    return path


def found(volume: Path, path: str) -> str:
    with open_inside(str(volume), path) as descriptor:
        return os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), os.path.realpath(volume))


@pytest.mark.parametrize("path", ["dir", "dir/inner", "file", "dir//inner/", "./dir/./inner"])
def test_what_is_inside_is_found(volume: Path, path: str) -> None:
    assert found(volume, path) == os.path.normpath(path)


@pytest.mark.parametrize(
    ("target", "path"),
    [("dir/inner", "link"), ("dir", "link/inner"), ("dir/../dir/inner", "link"), ("./file", "link")],
)
def test_links_that_stay_inside_are_followed(volume: Path, target: str, path: str) -> None:
    (volume / "link").symlink_to(target)
    assert found(volume, path) == os.path.normpath(path.replace("link", target))


@pytest.mark.parametrize("target", ["../secret", "/", "/etc", "dir/../../secret", "dir/inner/../../.."])
@pytest.mark.parametrize("path", ["link", "link/deeper"])
def test_links_that_lead_out_are_refused(volume: Path, target: str, path: str) -> None:
    # behaviours.md §22: "must stay inside the volume, `..` and symlinks out are refused"
    (volume / "link").symlink_to(target)
    with pytest.raises(OutsideVolume):
        found(volume, path)
    assert list((volume.parent / "secret").iterdir()) == []


def test_links_to_links_that_lead_out_are_refused(volume: Path) -> None:
    (volume / "dir" / "out").symlink_to("../../secret")
    (volume / "link").symlink_to("dir/out")
    with pytest.raises(OutsideVolume):
        found(volume, "link")


def test_links_that_go_up_and_down_many_times_use_up_no_descriptors(volume: Path) -> None:
    (volume / "dir" / "link").symlink_to("inner/../" * 400 + "inner")
    open_before = len(os.listdir("/proc/self/fd"))
    with open_inside(str(volume), "dir/../dir/link") as descriptor:
        assert len(os.listdir("/proc/self/fd")) < open_before + 50
        assert os.readlink(f"/proc/self/fd/{descriptor}") == os.path.realpath(volume / "dir" / "inner")
    before = os.listdir("/proc/self/fd")
    found(volume, "dir/link")
    assert os.listdir("/proc/self/fd") == before


def test_a_path_of_more_directories_than_descriptors_may_be_open_is_refused(volume: Path) -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="deeper than 255 directories"):
        found(volume, "a/" * 256)
    assert os.listdir("/proc/self/fd") == before
    assert found(volume, "a/" * 255) == "/".join("a" * 255)


def test_a_loop_of_links_ends(volume: Path) -> None:
    (volume / "a").symlink_to("b")
    (volume / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        found(volume, "a")


def test_missing_directories_are_made_with_the_volumes_mode(volume: Path) -> None:
    # behaviours.md §22: "missing paths are created as directories with the volume's mode"
    volume.chmod(0o2775)
    assert found(volume, "new/deeper") == "new/deeper"
    assert (volume / "new").stat().st_mode & 0o7777 == 0o2775
    assert (volume / "new" / "deeper").stat().st_mode & 0o7777 == 0o2775


def test_a_file_on_the_way_is_an_error(volume: Path) -> None:
    with pytest.raises(NotADirectoryError):
        found(volume, "file/deeper")


def test_descriptors_are_closed(volume: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    (volume / "out").symlink_to("/etc")
    found(volume, "dir/inner")
    with pytest.raises(OutsideVolume):
        found(volume, "dir/../out")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(("path", "is_directory", "mode"), [("dir", True, 0o750), ("file", False, 0o640)])
def test_a_part_is_bound_on_its_like(volume: Path, path: str, is_directory: bool, mode: int) -> None:
    # behaviours.md §22: "a file is bound on a file (0640; parents 0750)"
    mounts, target = FakeMounts(), volume.parent / "subpaths" / "main" / "0"
    bind_sub_path(mounts, volume=str(volume), path=path, target=str(target))
    assert target.is_dir() is is_directory
    assert target.stat().st_mode & 0o777 == mode
    assert target.parent.stat().st_mode & 0o777 == 0o750
    assert [(e.path, e.source) for e in mounts.table().entries] == [(str(target), str(volume / path))]


def test_release_takes_the_mounts_off_and_keeps_what_they_showed(volume: Path) -> None:
    mounts, places = FakeMounts(), volume.parent / "subpaths"
    bind_sub_path(mounts, volume=str(volume), path="dir", target=str(places / "main" / "0"))
    bind_sub_path(mounts, volume=str(volume), path="file", target=str(places / "side" / "1"))
    release_sub_paths(mounts, str(places))
    assert mounts.table().entries == ()
    assert not places.exists()
    assert (volume / "dir" / "inner").exists()
    assert (volume / "file").read_text() == "x"


def test_release_of_nothing_is_fine(tmp_path: Path) -> None:
    release_sub_paths(FakeMounts(), str(tmp_path / "none"))


def test_data_in_a_place_of_a_mount_is_never_removed(tmp_path: Path) -> None:
    place = tmp_path / "subpaths" / "main" / "0"
    place.parent.mkdir(parents=True)
    place.write_text("precious")
    with pytest.raises(OSError, match="holds data"):
        release_sub_paths(FakeMounts(), str(tmp_path / "subpaths"))
    assert place.read_text() == "precious"


def test_a_directory_with_data_in_place_of_a_mount_is_never_removed(tmp_path: Path) -> None:
    place = tmp_path / "subpaths" / "main" / "0"
    place.mkdir(parents=True)
    (place / "empty-but-mine").write_text("")
    with pytest.raises(OSError, match="not empty"):
        release_sub_paths(FakeMounts(), str(tmp_path / "subpaths"))
    assert (place / "empty-but-mine").exists()


def test_what_cannot_be_unmounted_stays(volume: Path) -> None:
    mounts, target = FakeMounts(), volume.parent / "subpaths" / "main" / "0"
    bind_sub_path(mounts, volume=str(volume), path="dir", target=str(target))
    mounts.busy.add(str(target))
    with pytest.raises(OSError, match="busy"):
        release_sub_paths(mounts, str(volume.parent / "subpaths"))
    assert target.exists()
