"""The folder that the agent watches: links to the manifests named on the command line."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from glasslet.answers.agent import ManifestProblem
from glasslet.cli.failure import Failure

_SUFFIXES = (".yaml", ".yml", ".json")


def wanted_files(paths: Sequence[str]) -> list[Path]:
    """The manifest files behind the named paths: files, and those directly in a folder. Raises Failure."""
    files: list[Path] = []
    for text in paths:
        path = Path(text).absolute()
        if path.is_dir():
            inside = sorted(
                entry
                for entry in path.iterdir()
                if entry.suffix in _SUFFIXES and entry.is_file() and not entry.name.startswith(".")
            )
            if not inside:
                raise Failure(f"PATH: {text} has no manifest in it; allowed: files ending in {', '.join(_SUFFIXES)}")
            files += inside
        elif path.is_file():
            files.append(path)
        elif path.exists():
            raise Failure(f"PATH: {text} is neither a file nor a folder")
        else:
            raise Failure(f"PATH: {text} does not exist")
    return list(dict.fromkeys(files))


def link(folder: Path, files: Sequence[Path]) -> None:
    """Adds links to these files. A link keeps its name, so that its pod keeps its identity."""
    present = {os.readlink(entry): entry for entry in folder.iterdir() if entry.is_symlink()}
    for file in files:
        if str(file) in present:
            continue
        entry = folder / file.name
        if entry.is_symlink() or entry.exists():
            entry = folder / f"{file.stem}-{zlib.crc32(os.fsencode(file)):08x}{file.suffix}"
        entry.symlink_to(file)


def unlink(folder: Path, files: Sequence[Path]) -> int:
    """Removes the links to these files; returns their number."""
    removed = 0
    for entry in folder.iterdir():
        if entry.is_symlink() and Path(os.readlink(entry)) in files:
            entry.unlink()
            removed += 1
    return removed


def clear(folder: Path) -> None:
    """Empties the folder; the files behind the links stay."""
    if folder.is_dir():
        for entry in folder.iterdir():
            entry.unlink()


def keep_standard_input(folder: Path) -> None:
    """Writes standard input (`-`) into the folder."""
    temporary = folder / ".stdin.new"
    temporary.write_bytes(sys.stdin.buffer.read())
    temporary.replace(folder / "stdin.yaml")


def broken_manifest_lines(problems: Sequence[ManifestProblem]) -> list[str]:
    """One line for each problem, with the file that was named, not its link."""
    return [f"broken manifest: {replace(problem, file=_linked_file(problem.file))}" for problem in problems]


def _linked_file(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return path


class FollowedFolders:
    """The named folders: while `up` runs, files that appear in them are linked, and removed ones unlinked."""

    def __init__(self, folder: Path, paths: Sequence[str]) -> None:
        self.folder = folder
        self.followed = [Path(path).absolute() for path in paths if path != "-" and Path(path).is_dir()]

    def update(self) -> None:
        """Brings the links up to date."""
        for folder in self.followed:
            try:
                present = wanted_files([str(folder)])
            except (Failure, OSError):
                present = []
            link(self.folder, present)
            entries = [entry for entry in self.folder.iterdir() if entry.is_symlink()]
            removed = {Path(os.readlink(entry)) for entry in entries} - set(present)
            unlink(self.folder, [file for file in removed if file.parent == folder])
