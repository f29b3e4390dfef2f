"""The folder that the agent watches: links to the manifests named on the command line, and pods made of workloads."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from glasslet.answers.agent import ManifestProblem
from glasslet.cli.failure import Failure
from glasslet.cli.output import write
from glasslet.cli.standalone.workloads import NotRunnable, Plain, expanded, is_plain_pod

_ORIGIN = "# made by glasslet up of "
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


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How workloads become pods: `claims` is the folder for their claims; see `workloads.expanded`."""

    claims: Path
    cron_jobs: bool = False


def add(folder: Path, files: Sequence[Path], rules: Rules) -> list[str]:
    """Adds a link to each file of one pod, and files with the pods of all others. What is run in another way than
    written, or not at all, comes back as lines. Raises Failure."""
    notes: list[str] = []
    linked = []
    for file in files:
        documents = _documents(file)
        if documents is None or is_plain_pod(documents):
            linked.append(file)
            continue
        try:
            made = expanded(documents, claims=rules.claims, cron_jobs=rules.cron_jobs)
        except NotRunnable as error:
            raise Failure(f"{file}: {error}") from None
        notes += made.notes
        _keep_pods(folder, file, made.pods)
    link(folder, linked)
    return notes


def _documents(file: Path) -> list[object] | None:
    """The documents of a file; None if it cannot be read: the agent says why."""
    import yaml

    try:
        if file.stat().st_size > _MOST_BYTES:
            return None
        return [one for one in yaml.safe_load_all(file.read_bytes()) if one is not None]
    except (OSError, yaml.YAMLError, RecursionError):
        return None


def _keep_pods(folder: Path, file: Path, pods: Sequence[Plain]) -> None:
    """One manifest for each pod; those that the file does not have any more go."""
    import yaml

    kept = set()
    for pod in pods:
        entry = folder / f"{_made_of(file)}{zlib.crc32(msgspec.json.encode(pod.get('metadata'))):08x}.yaml"
        text = f"{_ORIGIN}{file}\n{yaml.safe_dump(pod, sort_keys=False)}"
        kept.add(entry)
        if not entry.exists() or entry.read_text() != text:
            temporary = folder / f".{entry.name}.new"
            temporary.write_text(text)
            temporary.replace(entry)
    for entry in folder.glob(f"{_made_of(file)}*"):
        if entry not in kept:
            entry.unlink()


def _made_of(file: Path) -> str:
    """The beginning of the names of pods made of a file."""
    return f"{file.stem}-{zlib.crc32(os.fsencode(file)):08x}-"


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
    for file in files:
        for entry in folder.glob(f"{_made_of(file)}*"):
            entry.unlink()
            removed += 1
    return removed


def clear(folder: Path) -> None:
    """Empties the folder; the files behind the links stay."""
    if folder.is_dir():
        for entry in folder.iterdir():
            entry.unlink()


def keep_standard_input(folder: Path, rules: Rules) -> list[str]:
    """Writes standard input (`-`) into the folder, as `add` does with a file. Raises Failure."""
    kept, entry = folder.parent / "stdin.yaml", folder / "stdin.yaml"
    kept.write_bytes(sys.stdin.buffer.read())
    documents = _documents(kept)
    if documents is None or is_plain_pod(documents):
        _keep_pods(folder, kept, ())
        kept.replace(entry)
        return []
    entry.unlink(missing_ok=True)
    return add(folder, [kept], rules)


def broken_manifest_lines(problems: Sequence[ManifestProblem]) -> list[str]:
    """One line for each problem, with the file that was named, not its link."""
    return [f"broken manifest: {replace(problem, file=_linked_file(problem.file))}" for problem in problems]


def _linked_file(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        # A file that was made from a workload: it names its origin.
        pass
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            first = file.readline()
    except OSError:
        return path
    return first.removeprefix(_ORIGIN).rstrip("\n") if first.startswith(_ORIGIN) else path


class FollowedFolders:
    """The named folders: while `up` runs, files that appear in them are linked, and removed ones unlinked. Workloads
    are made into pods again when their file changes."""

    def __init__(self, folder: Path, paths: Sequence[str], rules: Rules, noted: Sequence[str] = ()) -> None:
        self.folder = folder
        self.rules = rules
        self.seen: dict[Path, int] = {}
        self.noted = set(noted)
        self.files = [Path(path).absolute() for path in paths if path != "-" and not Path(path).is_dir()]
        self.followed = [Path(path).absolute() for path in paths if path != "-" and Path(path).is_dir()]

    def update(self) -> None:
        """Brings the links up to date."""
        for folder in self.followed:
            try:
                present = wanted_files([str(folder)])
            except (Failure, OSError):
                present = []
            self._add(present)
            entries = [entry for entry in self.folder.iterdir() if entry.is_symlink()]
            removed = {Path(os.readlink(entry)) for entry in entries} - set(present)
            unlink(self.folder, [file for file in removed if file.parent == folder])
            made = {entry for entry in self.folder.iterdir() if not entry.is_symlink()}
            for entry in made:
                origin = Path(_linked_file(str(entry)))
                if origin.parent == folder and origin not in present:
                    entry.unlink(missing_ok=True)
        self._add([path for path in self.files if path.is_file()])

    def _add(self, files: Sequence[Path]) -> None:
        """Adds those that changed since the last time. A file that is no workload any more is left as it is."""
        changed = []
        for file in files:
            try:
                at = file.stat().st_mtime_ns
            except OSError:
                # It went meanwhile: the next update unlinks it.
                continue
            if self.seen.get(file) != at:
                self.seen[file] = at
                changed.append(file)
        try:
            for note in add(self.folder, changed, self.rules):
                if note not in self.noted:
                    self.noted.add(note)
                    write(note)
        except Failure as failure:
            failure.show()
