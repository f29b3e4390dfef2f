"""Opening what is below a folder, by the kernel's own check and where the kernel has none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from glasslet.host.files import descent
from glasslet.host.files.descent import open_regular_inside


@pytest.fixture(params=["openat2", "without"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`log` with a file, and beside it what must not be reached."""

    def refused(*_arguments: object, **_options: object) -> int:
        raise OSError(errno.ENOSYS, "no such call")

    if request.param == "without":
        monkeypatch.setattr(descent, "call_openat2", refused)
    log = tmp_path / "log"
    (log / "sub").mkdir(parents=True)
    (log / "sub" / "a").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    (log / "link-in").symlink_to("sub/a")
    (log / "link-out").symlink_to("../secret")
    (log / "link-far").symlink_to(tmp_path / "secret")
    return log


def read(folder: Path, name: str) -> bytes:
    with open(open_regular_inside(str(folder), name), "rb") as file:
        return file.read()


@pytest.mark.parametrize("name", ["sub/a", "link-in", "sub/../link-in"])
def test_files_and_links_that_stay_inside_are_opened(folder: Path, name: str) -> None:
    assert read(folder, name) == b"inside"


@pytest.mark.parametrize("name", ["link-out", "link-far", "../secret", "sub/../../secret"])
def test_what_leads_out_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(OSError, match=r"\[Errno 18\]"):
        read(folder, name)


def test_what_is_not_there_is_not_found(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(folder, "none")


def test_folders_and_pipes_are_no_files_and_nobody_waits_for_a_writer(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for name in ("sub", "pipe"):
        with pytest.raises(OSError, match=r"\[Errno 22\]"):
            read(folder, name)
