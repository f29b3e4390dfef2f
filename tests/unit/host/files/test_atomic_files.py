"""Files that change together. Quotes: behaviours.md §22."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from glasslet.host.files.atomic_files import FileContent, clean, write_together
from glasslet.host.files.layout import UnsafePath

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def files(**contents: str) -> dict[str, FileContent]:
    return {name.replace("__", "/"): FileContent(data=text.encode()) for name, text in contents.items()}


def write(path: Path, **contents: str) -> bool:
    return write_together(str(path), files(**contents), now=NOW)


def seen(path: Path) -> dict[str, str]:
    """What a program in a container reads: hidden names left out, links followed."""
    found = {}
    for top in path.iterdir():
        if top.name.startswith("..") or not top.exists():
            continue
        for one in [top] if top.is_file() else top.rglob("*"):
            if one.is_file():
                found[str(one.relative_to(path))] = one.read_text()
    return found


def versions(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path) if re.match(r"\.\.\d", name))


# "files in `..YYYY_MM_DD_HH_MM_SS.<digits>` (UTC, 0755), link `..data` to it swapped by renaming `..data_tmp`, user
# files are links to `..data/<first path element>`"
def test_layout_is_the_one_that_programs_know(tmp_path: Path) -> None:
    write(tmp_path, labels="a", user__deep__name="b")
    (version,) = versions(tmp_path)
    assert re.fullmatch(r"\.\.2026_01_02_03_04_05\.\d+", version)
    assert stat.S_IMODE((tmp_path / version).stat().st_mode) == 0o755
    assert os.readlink(tmp_path / "..data") == version
    assert os.readlink(tmp_path / "labels") == "..data/labels"
    assert os.readlink(tmp_path / "user") == "..data/user"
    assert sorted(os.listdir(tmp_path)) == sorted(["..data", version, "labels", "user"])


def test_a_change_shows_all_new_files_and_leaves_one_version(tmp_path: Path) -> None:
    # behaviours.md §22: "Old directory and stale links are removed after it."
    write(tmp_path, a="1", b__c="1", gone="1")
    assert write(tmp_path, a="2", b__c="1", new="2")
    assert seen(tmp_path) == {"a": "2", "b/c": "1", "new": "2"}
    assert len(versions(tmp_path)) == 1
    assert not os.path.lexists(tmp_path / "gone")


# "A new directory is made only if some content differs or a path went; a change of mode alone is not written."
def test_nothing_is_written_while_content_is_the_same(tmp_path: Path) -> None:
    write(tmp_path, a="1")
    before = versions(tmp_path)
    changed = write_together(str(tmp_path), {"a": FileContent(data=b"1", mode=0o600)}, now=NOW)
    assert not changed
    assert versions(tmp_path) == before
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


def test_a_path_that_went_is_a_change(tmp_path: Path) -> None:
    write(tmp_path, a="1", b__c="1", b__d="1")
    assert write(tmp_path, a="1", b__c="1")
    assert seen(tmp_path) == {"a": "1", "b/c": "1"}


def test_no_files_at_all_are_an_empty_version(tmp_path: Path) -> None:
    assert write(tmp_path)
    assert not write(tmp_path)
    assert seen(tmp_path) == {}
    write(tmp_path, a="1")
    write(tmp_path)
    assert seen(tmp_path) == {}


# "Modes, owner and fsGroup are set before the swap."
def test_modes_hold_whatever_the_umask_and_are_set_before_the_files_are_shown(tmp_path: Path) -> None:
    shown: list[Any] = []

    def finish(version: str) -> None:
        shown.append((os.path.lexists(tmp_path / "..data"), stat.S_IMODE(os.stat(f"{version}/a").st_mode)))

    old = os.umask(0o077)
    try:
        write_together(str(tmp_path), {"a": FileContent(data=b"1", mode=0o666)}, now=NOW, finish=finish)
    finally:
        os.umask(old)
    assert shown == [(False, 0o666)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_may_belong_to_a_user(tmp_path: Path) -> None:
    write_together(str(tmp_path), {"a": FileContent(data=b"1", mode=0o600, owner=1234)}, now=NOW)
    assert (tmp_path / "a").stat().st_uid == 1234


# "Paths: relative, at most 4096 characters, 255 per element, no element `..`, not beginning with `..`."
@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "a/../../b",
        "..",
        "..data",
        "..2026_01_01_00_00_00.1/a",
        "x" * 256,
        "a/" * 2100 + "b",
        "a\0b",
        ".",
    ],
)
def test_paths_that_could_lead_elsewhere_are_refused_before_anything_is_written(tmp_path: Path, path: str) -> None:
    with pytest.raises(UnsafePath, match="invalid path"):
        write_together(str(tmp_path), {"good": FileContent(data=b"1"), path: FileContent(data=b"1")}, now=NOW)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "is_"), [("a//b/./c", "a/b/c"), ("a..b", "a..b"), (".hidden", ".hidden"), ("a/..b", "a/..b")]
)
def test_paths_are_cleaned(path: str, is_: str) -> None:
    assert clean(path) == is_


def test_data_does_not_show_in_repr() -> None:
    assert "hunter2" not in repr({"password": FileContent(data=b"hunter2")})


def test_directories_of_other_mounts_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "nested").mkdir()
    write(tmp_path, a="1")
    write(tmp_path, a="2")
    assert (tmp_path / "nested").is_dir()


def test_a_link_that_leads_elsewhere_is_not_trusted(tmp_path: Path) -> None:
    """Whatever made `..data` point out of the volume, nothing there is read, changed or removed."""
    volume, other = tmp_path / "volume", tmp_path / "other"
    volume.mkdir()
    other.mkdir()
    (other / "a").write_text("1")
    (volume / "..data").symlink_to("../other")
    write(volume, a="1")
    assert seen(volume) == {"a": "1"}
    assert (other / "a").read_text() == "1"


def test_a_version_that_finds_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    def no_room(version: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write(tmp_path, a="1")
    with pytest.raises(OSError, match="No space left"):
        write_together(str(tmp_path), files(a="2"), now=NOW, finish=no_room)
    assert seen(tmp_path) == {"a": "1"}
    assert len(versions(tmp_path)) == 1


class _Died(BaseException):
    """The agent is gone."""


STEPS = ("mkdir", "chmod", "open", "symlink", "rename", "unlink", "fchmod", "listdir")


@pytest.mark.parametrize("before", [{}, {"a": "1", "b__c": "1", "gone__x": "1"}])
def test_death_at_any_step_leaves_old_or_new_and_is_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, str]
) -> None:
    """1. A volume holds an old version, or none. 2. A new one is written; the agent dies at its n-th system call. 3. A
    reader sees the old files or the new ones. 4. The next agent makes it right, and nothing is left over."""
    new = {"a": "2", "b__c": "2", "fresh__x": "2"}
    for number in range(200):
        volume = tmp_path / str(number)
        volume.mkdir()
        if before:
            write(volume, **before)
        with monkeypatch.context() as patch:
            died = _die_at(patch, number)
            with contextlib.suppress(_Died):
                write(volume, **new)
        through_data = _version_content(volume)
        assert through_data in (_plain(before), _plain(new))
        assert write(volume, **new) is (through_data != _plain(new))
        assert seen(volume) == _plain(new)
        assert len(os.listdir(volume)) == 5  # ..data, one version, a, b, fresh
        if not died:
            break
    else:
        raise AssertionError("writing never ended")
    assert number > 10


def _plain(contents: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "/"): text for name, text in contents.items()}


def _version_content(volume: Path) -> dict[str, str]:
    data = volume / "..data"
    return {str(p.relative_to(data)): p.read_text() for p in data.rglob("*") if p.is_file()} if data.exists() else {}


def _die_at(patch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Raises at the number-th call; the list says whether that happened."""
    died: list[str] = []
    calls = 0

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            if calls == number:
                died.append(name)
                raise _Died
            calls += 1
            return real(*args, **kwargs)

        return call

    for name in STEPS:
        patch.setattr(os, name, wrapped(name, getattr(os, name)))
    patch.setattr(shutil, "rmtree", wrapped("rmtree", shutil.rmtree))
    return died


def test_a_pipe_in_place_of_a_file_is_replaced_and_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path, key="value")
    real = os.path.realpath(tmp_path / "key")
    os.unlink(real)
    os.mkfifo(real)
    assert write(tmp_path, key="value")
    assert seen(tmp_path) == {"key": "value"}
