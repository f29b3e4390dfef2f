"""Files that change together: readers see all old ones or all new ones, also when the agent dies half-way.

    <directory>/..2026_01_02_03_04_05.123456789/user/labels    the files of one version
    <directory>/..data -> ..2026_01_02_03_04_05.123456789      the version that counts, swapped by a rename
    <directory>/user -> ..data/user                            one link for each first path element

Files are not synced to the disk: after a power failure the pods of this node start from the beginning, and a version
that differs from the desired one is replaced. Source of the layout: the Go kubelet's, on which programs in containers
rely to see changes.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from glasslet.host.files.layout import UnsafePath
from glasslet.host.files.removal import remove_own_tree
from glasslet.host.files.small_files import read_regular

DATA = "..data"
_NEXT = "..data_tmp"
_MAX_PATH = 4096
_MAX_NAME = 255
_DIRECTORY_MODE = 0o755
_VERSION = re.compile(r"\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+")


class FileContent(Struct, frozen=True, kw_only=True):
    """One file. `owner` is a user id, None for the agent's own. `repr` does not show the data, which may be secret."""

    data: bytes
    mode: int = 0o644
    owner: int | None = None

    def __repr__(self) -> str:
        return f"FileContent({len(self.data)} bytes, mode {self.mode:o}, owner {self.owner})"


Files = Mapping[str, FileContent]
"""By path relative to the directory."""


def write_together(
    directory: str, files: Files, *, now: datetime, finish: Callable[[str], None] = lambda version: None
) -> bool:
    """Makes the directory show exactly these files; returns whether anything was written. `finish` gets the path of
    the new version before it is shown (to set its group). Raises UnsafePath for names that lead elsewhere, OSError.

    A difference of modes alone is no reason to write."""
    wanted = {clean(path): content for path, content in files.items()}
    old = _shown_version(directory)
    write = old is None or not _holds(f"{directory}/{old}", wanted)
    if write:
        _show(directory, _new_version(directory, wanted, now, finish))
    _link(directory, wanted)
    _tidy(directory, wanted)
    return write


def clean(path: str) -> str:
    """The path without empty and `.` elements. Raises UnsafePath if it could lead out of the directory."""
    if not path:
        raise UnsafePath("invalid path: must not be empty")
    if path.startswith("/"):
        raise UnsafePath(f"invalid path: must be relative path: {path}")
    if len(path.encode()) > _MAX_PATH:
        raise UnsafePath(f"invalid path: must be less than or equal to {_MAX_PATH} characters")
    if "\0" in path:
        raise UnsafePath("invalid path: must not contain a zero byte")
    parts = path.split("/")
    if ".." in parts:
        raise UnsafePath(f"invalid path: must not contain '..': {path}")
    if any(len(part.encode()) > _MAX_NAME for part in parts):
        raise UnsafePath(f"invalid path: filenames must be less than or equal to {_MAX_NAME} characters")
    parts = [part for part in parts if part not in ("", ".")]
    if not parts or parts[0].startswith(".."):
        raise UnsafePath(f"invalid path: must not start with '..': {path}" if parts else f"invalid path: {path}")
    return "/".join(parts)


def _shown_version(directory: str) -> str | None:
    """Returns the name of the version that counts, None without one that can be trusted."""
    try:
        name = os.readlink(f"{directory}/{DATA}")
    except OSError:
        return None
    return name if _VERSION.fullmatch(name) else None


def _holds(version: str, wanted: Files) -> bool:
    """Whether a version holds these files with this content and no others."""
    found = 0
    # Not os.walk, which calls itself: paths may be a thousand directories deep.
    ahead = [version]
    while ahead:
        try:
            with os.scandir(ahead.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        ahead.append(entry.path)
                        continue
                    content = wanted.get(entry.path[len(version) + 1 :])
                    if content is None or not _reads_as(entry.path, content.data):
                        return False
                    found += 1
        except OSError:
            return False
    return found == len(wanted)


def _reads_as(path: str, data: bytes) -> bool:
    try:
        return read_regular(path, most=len(data)) == data
    except OSError:
        return False


def _new_version(directory: str, wanted: Files, now: datetime, finish: Callable[[str], None]) -> str:
    """Writes a version that is not shown yet. Returns its name."""
    name = f"{now:..%Y_%m_%d_%H_%M_%S}.{secrets.randbelow(1 << 32)}"
    path = f"{directory}/{name}"
    os.mkdir(path)
    try:
        os.chmod(path, _DIRECTORY_MODE)
        for relative, content in wanted.items():
            _write(path, relative, content)
        finish(path)
    except OSError:
        # A full disk must not get fuller with every try.
        with contextlib.suppress(OSError):
            remove_own_tree(path)
        raise
    return name


def _write(version: str, relative: str, content: FileContent) -> None:
    parent = version
    for part in relative.split("/")[:-1]:
        parent = f"{parent}/{part}"
        if not os.path.isdir(parent):
            os.mkdir(parent)
            os.chmod(parent, _DIRECTORY_MODE)
    descriptor = os.open(f"{version}/{relative}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content.data)
        file.flush()
        os.fchmod(descriptor, content.mode)
        if content.owner is not None:
            os.fchown(descriptor, content.owner, -1)


def _show(directory: str, version: str) -> None:
    following = f"{directory}/{_NEXT}"
    try:
        os.symlink(version, following)
    except FileExistsError:
        # An earlier agent died here.
        os.unlink(following)
        os.symlink(version, following)
    os.rename(following, f"{directory}/{DATA}")


def _link(directory: str, wanted: Iterable[str]) -> None:
    for first in {path.partition("/")[0] for path in wanted}:
        link = f"{directory}/{first}"
        if not os.path.lexists(link):
            os.symlink(f"{DATA}/{first}", link)


def _tidy(directory: str, wanted: Iterable[str]) -> None:
    """Removes links to deleted files, and versions that do not count."""
    shown = _shown_version(directory)
    visible = {path.partition("/")[0] for path in wanted}
    for name in os.listdir(directory):
        path = f"{directory}/{name}"
        if _VERSION.fullmatch(name):
            if name != shown:
                remove_own_tree(path)
        elif name not in visible and os.path.islink(path) and os.readlink(path) == f"{DATA}/{name}":
            os.unlink(path)
