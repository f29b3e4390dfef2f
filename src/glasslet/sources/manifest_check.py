"""Checks pod manifests before any agent reads them: `glasslet check FILE...`. Every problem of every file at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from glasslet.config.document import Document, DocumentError
from glasslet.config.documents import load_documents
from glasslet.config.files import FileProblem, read_regular_file
from glasslet.sources.manifest import MAX_BYTES, ManifestReader, Problem, shown
from glasslet.sources.manifest_problems import all_problems
from glasslet.sources.names import FILE
from glasslet.sources.static import Origin

STANDARD_INPUT = "-"
_SUFFIXES = (".yaml", ".yml", ".json")


class CheckedProblem(Struct, frozen=True):
    """One problem. `line` 0: the file as a whole; `field` "": the document as a whole; `message` is complete."""

    file: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"


class ManifestReport(Struct, frozen=True):
    """The answer. `files`: how many were read."""

    problems: tuple[CheckedProblem, ...]
    files: int

    def as_plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"problems": [asdict(problem) for problem in self.problems], "files": self.files}

    def as_text(self) -> str:
        """One line for each problem, then a sum."""
        read = "1 file" if self.files == 1 else f"{self.files} files"
        if not self.problems:
            return f"ok: no problem in {read}"
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        return "\n".join([*(_printable(str(problem)) for problem in self.problems), f"{count} in {read}"])


def check_manifests(paths: Iterable[str], node_name: str) -> ManifestReport:
    """Checks files, folders (the manifests directly in them) and standard input (`-`). Never raises for bad input."""
    check = _Check(ManifestReader(node_name=node_name))
    files, problems = 0, []
    for path in dict.fromkeys(paths):
        inside = _files(path)
        if not inside:
            text = f"has no manifest in it; allowed: files ending in {', '.join(_SUFFIXES)}"
            problems.append(CheckedProblem(shown(path), 0, "", text))
        for file in inside:
            files += 1
            problems += sorted(check.file(file), key=lambda problem: problem.line)
    return ManifestReport(tuple(problems), files)


class _Check:
    """Remembers the names of earlier pods: the kubelet runs only one pod of a name."""

    def __init__(self, reader: ManifestReader) -> None:
        self._reader = reader
        self._pods: dict[tuple[str, str], str] = {}

    def file(self, file: str) -> Iterator[CheckedProblem]:
        place = "standard input" if file == STANDARD_INPUT else shown(file)
        try:
            data = _read(file)
            documents = load_documents(data, origin=place, max_bytes=MAX_BYTES, tolerate_duplicates=True)
        except FileProblem as bad:
            yield CheckedProblem(place, 0, "", bad.reason)
            return
        except DocumentError as error:
            yield CheckedProblem(place, error.line, "", error.message)
            return
        if not documents:
            yield CheckedProblem(place, 0, "", "is empty, want a Pod")
        for document in documents[1:]:
            text = "only the first document of a manifest file is read; give each pod its own file"
            yield CheckedProblem(place, document.line_of(""), "", text)
        for document in documents:
            yield from self._document(document, place)

    def _document(self, document: Document, place: str) -> Iterator[CheckedProblem]:
        for path, line in document.duplicates:
            yield CheckedProblem(place, line, path, f"{path}: given more than once; the last one counts")
        read = self._reader.pod(document, Origin(FILE, place))
        if isinstance(read, Problem) and not read.parts:
            yield CheckedProblem(place, read.line, "", read.message)
        if not isinstance(document.value, dict) or document.value.get("kind") != "Pod":
            return
        for problem in all_problems(document.value, self._reader.node_name):
            yield CheckedProblem(place, document.line_of(problem.field), problem.field, problem.text)
        if not isinstance(read, Problem):
            name = (read.metadata.namespace, read.metadata.name)
            here = f"{place}:{document.line_of('metadata.name')}"
            if (first := self._pods.setdefault(name, here)) != here:
                text = f"metadata.name: a pod of this name is also in {first}; only one of them runs"
                yield CheckedProblem(place, document.line_of("metadata.name"), "metadata.name", text)


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return [path]
    files = [name for name in names if name.endswith(_SUFFIXES) and not name.startswith(".")]
    return [os.path.join(path, name) for name in files]


def _read(file: str) -> bytes:
    if file == STANDARD_INPUT:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    return read_regular_file(file, limit=MAX_BYTES)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
