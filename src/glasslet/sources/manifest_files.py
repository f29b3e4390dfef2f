"""The manifest files of some paths: reads them, and keeps the last pods of each.

A file that was good and turned bad may be in the middle of being written. Its pod stays until a later full look finds
the file bad and unchanged; only then is it what upstream calls a broken file: skipped, its pod removed. A file that
cannot be read because the machine is in trouble is not broken: what it said last counts for as long as that lasts.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.pod import Pod
from glasslet.config.document import Document, DocumentError
from glasslet.config.documents import load_documents
from glasslet.config.files import FileProblem, is_passing, read_regular_file, reason_of
from glasslet.sources.manifest import MAX_BYTES, ManifestReader, Problem, shown
from glasslet.sources.names import FILE
from glasslet.sources.static import Origin

_RACY_NANOSECONDS = 100_000_000
"""A file changed this shortly before it was read may change again without a new time stamp: it is read once more."""
_SHOWN_KEYS = 5
_SHOWN_KEY = 200
"""Repeated keys that a finding names, and characters of each."""


class Signature(NamedTuple):
    """Shows whether a file changed, without reading it."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


class ManifestReading(Struct, frozen=True):
    """The content of a file: pods, or a problem. `notes` are findings about a file that is good nevertheless."""

    signature: Signature
    pods: tuple[Pod, ...] = ()
    problem: Problem | None = None
    notes: tuple[str, ...] = ()
    settled: bool = True
    """False if the next check should read the file again although its signature is the same."""
    kept: bool = False
    """The pods are those of the last good reading."""
    unread: bool = False
    """The content is unknown: the problem is the machine's."""


_NEVER_SEEN = Signature(0, 0, 0, 0, 0)


class ManifestFiles:
    """The readings of all files below some paths (folders or single files). No folder is entered further."""

    def __init__(self, *, paths: tuple[str, ...], reader: ManifestReader, every_document: bool = False) -> None:
        self._paths = tuple(map(os.path.abspath, paths))
        self._reader = reader
        self._every_document = every_document
        self._readings: dict[str, ManifestReading] = {}
        self._files: dict[str, list[str]] = {}
        self._unreadable: dict[str, Problem] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, absolute (they are part of the pods' UIDs)."""
        return self._paths

    def check_all(self) -> None:
        """Reads every file that is new or changed, and gives up on files that stay bad."""
        for path in self._paths:
            self._list(path)
        present = [file for files in self._files.values() for file in files]
        for file in set(self._readings) - set(present):
            del self._readings[file]
        for file in present:
            self._look(file, full=True)

    def check(self, changed: set[str]) -> None:
        """Reads the files that changed; all others are taken to be unchanged."""
        for path in self._paths:
            self._list(path)
        present = {file for files in self._files.values() for file in files}
        for file in set(self._readings) - present:
            del self._readings[file]
        for file in sorted(present):
            if file in changed or (file not in self._readings and not _is_fresh(file)):
                self._look(file, full=False)

    def forget(self, files: set[str]) -> bool:
        """These files were deleted for a moment, and their pods with them. False if none of them was known."""
        known = files & self._readings.keys()
        for file in known:
            del self._readings[file]
        return bool(known)

    def pods(self) -> list[Pod] | None:
        """All pods, files in the order of their names. None as long as no path could be read."""
        if not any(self._is_known(path) for path in self._paths):
            return None
        readings = (self._readings.get(file) for path in self._paths for file in self._files.get(path, ()))
        return [pod for reading in readings if reading for pod in reading.pods]

    def findings(self) -> Iterator[str]:
        """Findings: one text per bad file, and notes about good ones."""
        for problem in self._unreadable.values():
            yield str(problem)
        for reading in self._readings.values():
            if reading.problem is not None:
                yield str(reading.problem)
            yield from reading.notes

    def broken(self) -> Iterator[Problem]:
        """Problems of files that no pod came of."""
        yield from self._unreadable.values()
        yield from (it.problem for it in self._readings.values() if it.problem is not None and not it.kept)

    def _is_known(self, path: str) -> bool:
        """Whether a path was read once: a folder listed, a file good, or missing. Upstream waits in all other cases."""
        files = self._files.get(path)
        if files != [path]:
            return files is not None
        reading = self._readings.get(path)
        return reading is None or reading.problem is None or reading.kept

    def _list(self, path: str) -> None:
        """The files that the path stands for now; a path that fails keeps its last files."""
        self._unreadable.pop(path, None)
        try:
            mode = os.stat(path).st_mode
            if stat.S_ISDIR(mode):
                names = sorted((name for name in os.listdir(path) if not name.startswith(".")), key=os.fsencode)
                self._files[path] = [os.path.join(path, name) for name in names]
            else:
                self._files[path] = [path]
        except FileNotFoundError:
            self._files[path] = []
        except OSError as error:
            self._unreadable[path] = Problem(shown(path), f"cannot be read: {reason_of(error)}")

    def _look(self, file: str, *, full: bool) -> None:
        before = self._readings.get(file)
        try:
            looked = _stat(file)
        except OSError as error:
            self._keep(file, before, Problem(shown(file), f"cannot be looked at: {reason_of(error)}"))
            return
        if looked is None:
            self._readings.pop(file, None)
            return
        signature, problem = looked
        if before is not None and before.signature == signature and before.settled:
            if full and before.kept:
                self._readings[file] = replace(before, pods=(), kept=False)
            return
        now = self._read(file, signature) if problem is None else ManifestReading(signature, problem=problem)
        if now.unread and now.problem is not None:
            self._keep(file, before, now.problem)
            return
        if now.problem is not None and before is not None and before.pods:
            still_bad = full and before.signature == signature and before.kept
            now = now if still_bad else replace(now, pods=before.pods, kept=True)
        self._readings[file] = now

    def _keep(self, file: str, before: ManifestReading | None, problem: Problem) -> None:
        """The next check reads it again."""
        reading = before or ManifestReading(_NEVER_SEEN)
        self._readings[file] = replace(reading, problem=problem, settled=False, kept=bool(reading.pods), unread=True)

    def _read(self, file: str, signature: Signature) -> ManifestReading:
        # Upstream remembers no signature at all; with one, the check of an unchanged folder costs a stat per file.
        settled = time.time_ns() - signature.changed > _RACY_NANOSECONDS
        try:
            data = read_regular_file(file, limit=MAX_BYTES)
            documents = load_documents(data, origin=file, max_bytes=MAX_BYTES, tolerate_duplicates=True)
        except FileProblem as bad:
            return ManifestReading(
                signature, problem=Problem(shown(file), bad.reason), settled=settled, unread=bad.passing
            )
        except DocumentError as error:
            return ManifestReading(signature, problem=Problem(shown(file), error.message, error.line), settled=settled)
        if not documents:
            return ManifestReading(signature, problem=Problem(shown(file), "is empty, want a Pod"), settled=settled)
        pods: list[Pod] = []
        used = documents if self._every_document else documents[:1]
        for document in used:
            found = self._pods(document, file)
            if isinstance(found, Problem):
                return ManifestReading(signature, problem=found, settled=settled)
            pods += found
        notes = tuple(_notes(shown(file), used, len(documents) - len(used)))
        return ManifestReading(signature, tuple(pods), notes=notes, settled=settled)

    def _pods(self, document: Document, file: str) -> list[Pod] | Problem:
        origin = Origin(FILE, file)
        if self._every_document:
            return self._reader.pods(document, origin)
        pod = self._reader.pod(document, origin)
        return pod if isinstance(pod, Problem) else [pod]


def _notes(file: str, documents: list[Document], ignored: int) -> Iterator[str]:
    found = [(path, line) for document in documents for path, line in document.duplicates]
    # A file of ten megabytes may repeat a hundred thousand keys, each as long as it likes.
    repeated = [f"{path[:_SHOWN_KEY]} (line {line})" for path, line in found[:_SHOWN_KEYS]]
    if len(found) > _SHOWN_KEYS:
        repeated.append(f"and {len(found) - _SHOWN_KEYS} more")
    if repeated:
        yield f"{file}: {', '.join(repeated)}: given more than once, the last one counts"
    if ignored:
        yield f"{file}: only the first document of a manifest file is read, {ignored} more ignored"


def _stat(file: str) -> tuple[Signature, Problem | None] | None:
    """The file's signature and what is wrong with its kind; None when it was deleted. Raises OSError when it cannot be
    found out."""
    try:
        found = os.stat(file)
    except OSError as error:
        if is_passing(error):
            raise
        try:
            link = os.lstat(file)
        except FileNotFoundError:
            return None
        reason = "is a link to nothing" if isinstance(error, FileNotFoundError) else reason_of(error)
        return _signature(link), Problem(shown(file), reason)
    if stat.S_ISDIR(found.st_mode):
        # Its times change with its content, which is not read.
        signature = Signature(found.st_dev, found.st_ino, 0, 0, 0)
        return signature, Problem(shown(file), "is a directory; manifests are not looked for in it")
    if not stat.S_ISREG(found.st_mode):
        return _signature(found), Problem(shown(file), "is neither a regular file nor a link to one")
    return _signature(found), None


def _signature(found: os.stat_result) -> Signature:
    return Signature(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _is_fresh(file: str) -> bool:
    """The file is new and no event says that it is complete: probably it is being written."""
    try:
        found = os.lstat(file)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1
