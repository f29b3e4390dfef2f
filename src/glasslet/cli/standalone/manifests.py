"""The files of the command line: the agent reads those of one pod itself; all others go to the controllers."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from glasslet.answers.agent import ManifestProblem
from glasslet.answers.box import SourceFile
from glasslet.cli.failure import Failure
from glasslet.cli.standalone.box_process import BoxProcess, fetched, is_url
from glasslet.cli.standalone.state_dir import StateDir

_MOST_BYTES = 10 * 1024 * 1024
"""As the agent's own limit for a manifest."""
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


def add(folder: Path, files: Sequence[SourceFile], box: BoxProcess) -> None:
    """Links each file of one pod, which the agent reads itself; all others are for the controllers."""
    linked = [file for file in files if is_plain_pod(Path(file.file))]
    others = [file for file in files if file not in linked]
    box.remove(file.place for file in linked)
    _unlink(folder, [Path(file.file) for file in others])
    if others:
        box.add(others)
    link(folder, [Path(file.file) for file in linked])


def is_plain_pod(file: Path) -> bool:
    """Whether the agent reads the file as it is: one document that the controllers do not know, or nothing readable.
    It says best what is wrong with one pod."""
    import yaml

    try:
        if file.stat().st_size > _MOST_BYTES:
            return True
        documents = [one for one in yaml.safe_load_all(file.read_bytes()) if one is not None]
    except (OSError, yaml.YAMLError, RecursionError, ValueError):
        return True
    if len(documents) > 1:
        return False
    return not documents or not isinstance(documents[0], dict) or documents[0].get("kind") in (None, "Pod")


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


def remove(folder: Path, files: Sequence[str], box: BoxProcess) -> int:
    """Removes files by the names under which they were added; returns their number."""
    paths = [Path(file).absolute() for file in files if not is_url(file)]
    places = [str(path) for path in paths] + [file for file in files if is_url(file)]
    return _unlink(folder, paths) + box.remove(places)


def _unlink(folder: Path, files: Sequence[Path]) -> int:
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


def sources_of(state: StateDir, paths: Sequence[str]) -> list[SourceFile]:
    """The files behind the paths of a command line: files, those directly in a folder, URLs, standard input (`-`).
    Raises Failure."""
    found = []
    for path in paths:
        if path == "-":
            kept = state.path / "stdin.yaml"
            kept.write_bytes(sys.stdin.buffer.read())
            found.append(SourceFile(place=str(kept), file=str(kept)))
        elif is_url(path):
            found.append(SourceFile(place=path, file=str(fetched(state, path))))
        else:
            found += [SourceFile(place=str(file), file=str(file)) for file in wanted_files([path])]
    return found


def broken_manifest_lines(problems: Sequence[ManifestProblem]) -> list[str]:
    """One line for each problem, with the file that was named, not its link."""
    return [f"broken manifest: {replace(problem, file=_linked_file(problem.file))}" for problem in problems]


def _linked_file(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        pass
    name = Path(path).name
    # A pod of a workload: its annotation names the workload.
    if not name.startswith("box."):
        return path
    try:
        metadata = msgspec.json.decode(Path(path).read_bytes(), type=dict)["metadata"]
        return str(metadata["annotations"]["glasslet.dev/owner"])
    except (OSError, msgspec.MsgspecError, KeyError, TypeError):
        return path


class FollowedFolders:
    """The named files and folders, while `up` runs: files that appear in a folder are added, and removed ones go."""

    def __init__(self, folder: Path, paths: Sequence[str], box: BoxProcess) -> None:
        self.folder = folder
        self.box = box
        self.seen: dict[Path, int] = {}
        named = [path for path in paths if path != "-" and not is_url(path)]
        self.files = [Path(path).absolute() for path in named if not Path(path).is_dir()]
        self.followed = [Path(path).absolute() for path in named if Path(path).is_dir()]

    def update(self) -> None:
        """Brings links and sources up to date."""
        for folder in self.followed:
            try:
                present = wanted_files([str(folder)])
            except (Failure, OSError):
                present = []
            self._add(present)
            links = [Path(os.readlink(entry)) for entry in self.folder.iterdir() if entry.is_symlink()]
            _unlink(self.folder, [file for file in links if file.parent == folder and file not in present])
            places = [file.place for file in self.box.sources.files]
            gone = [place for place in places if Path(place).parent == folder and Path(place) not in present]
            if gone:
                self.box.remove(gone)
        self._add([path for path in self.files if path.is_file()])

    def _add(self, files: Sequence[Path]) -> None:
        """Adds those that changed since the last time: a file may have become another kind of file."""
        changed = []
        for file in files:
            try:
                at = file.stat().st_mtime_ns
            except OSError:
                # It went meanwhile: the next update removes it.
                continue
            if self.seen.get(file) != at:
                self.seen[file] = at
                changed.append(SourceFile(place=str(file), file=str(file)))
        if changed:
            add(self.folder, changed, self.box)
            self.box.ensure()
