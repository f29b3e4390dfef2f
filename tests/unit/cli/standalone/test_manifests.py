"""Links to the manifests that a person named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from glasslet.answers.box import SourceFile
from glasslet.cli.failure import Failure
from glasslet.cli.standalone.box_process import BoxProcess
from glasslet.cli.standalone.manifests import FollowedFolders, add, clear, link, remove, wanted_files
from glasslet.cli.standalone.state_dir import StateDir


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "manifests"
    made.mkdir()
    return made


def manifest(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("kind: Pod\n")
    return path


@pytest.fixture
def box(tmp_path: Path) -> BoxProcess:
    return BoxProcess(StateDir(tmp_path / "state"))


def source(path: Path) -> SourceFile:
    return SourceFile(place=str(path), file=str(path))


def linked(folder: Path) -> set[str]:
    return {os.readlink(entry) for entry in folder.iterdir()}


def test_a_folder_stands_for_the_manifests_directly_in_it(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", ".hidden.yaml", "README.md", "deeper/c.yaml"):
        manifest(tmp_path / "pods" / name)
    assert [file.name for file in wanted_files([str(tmp_path / "pods")])] == ["a.json", "b.yaml"]


@pytest.mark.parametrize("make", [lambda path: None, os.mkfifo, os.mkdir], ids=["missing", "fifo", "empty folder"])
def test_a_path_without_manifests_is_refused_by_its_name(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "odd")
    with pytest.raises(Failure, match="odd"):
        wanted_files([str(tmp_path / "odd")])


def test_linking_again_changes_nothing(tmp_path: Path, folder: Path) -> None:
    file = manifest(tmp_path / "web.yaml")
    link(folder, [file])
    link(folder, [file])
    assert [entry.name for entry in folder.iterdir()] == ["web.yaml"]


def test_files_of_the_same_name_both_run(tmp_path: Path, folder: Path) -> None:
    files = [manifest(tmp_path / "a" / "web.yaml"), manifest(tmp_path / "b" / "web.yaml")]
    link(folder, files)
    assert linked(folder) == {str(file) for file in files}


def test_removing_leaves_the_file_and_the_others(tmp_path: Path, folder: Path, box: BoxProcess) -> None:
    files = [manifest(tmp_path / "a.yaml"), manifest(tmp_path / "b.yaml")]
    add(folder, [source(file) for file in files], box)
    assert remove(folder, [str(files[0])], box) == 1
    assert linked(folder) == {str(files[1])}
    assert files[0].exists()


def test_clearing_leaves_the_files(tmp_path: Path, folder: Path) -> None:
    file = manifest(tmp_path / "a.yaml")
    link(folder, [file])
    clear(folder)
    assert list(folder.iterdir()) == []
    assert file.exists()


@pytest.mark.parametrize("text", ["kind: Deployment", "kind: List", "kind: Pod\n---\nkind: Pod", "kind: Secret"])
def test_all_but_one_pod_is_for_the_controllers(tmp_path: Path, folder: Path, box: BoxProcess, text: str) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(text)
    add(folder, [source(file)], box)
    assert linked(folder) == set()
    assert box.sources.files == (source(file),)
    # It becomes one pod, and changes sides.
    add(folder, [source(manifest(file))], box)
    assert linked(folder) == {str(file)}
    assert not box.sources.files
    assert remove(folder, [str(file)], box) == 1


def test_files_that_come_and_go_in_a_named_folder_are_followed(tmp_path: Path, folder: Path, box: BoxProcess) -> None:
    single = manifest(tmp_path / "single.yaml")
    first = manifest(tmp_path / "pods" / "first.yaml")
    link(folder, wanted_files([str(single), str(first.parent)]))
    following = FollowedFolders(folder, [str(single), str(first.parent)], box)
    second = manifest(tmp_path / "pods" / "second.yaml")
    first.unlink()
    following.update()
    assert linked(folder) == {str(single), str(second)}
