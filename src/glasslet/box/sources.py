"""The files that were named, read again when they change. A file that becomes unusable keeps what it said before."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from glasslet.answers.box import SourceFile
from glasslet.box.documents import DocumentFinding, Documents, objects_of
from glasslet.config.files import MAX_BYTES


class _Known(Struct, frozen=True, kw_only=True):
    stamp: tuple[int, int, int]
    documents: Documents


class SourceReader:
    """Reads files. `copies`: the folder for the last good text of each. It counts while the file is broken or gone."""

    def __init__(self, copies: Path) -> None:
        self._copies = copies
        self._known: dict[str, _Known] = {}

    def read(self, files: Sequence[SourceFile]) -> list[Documents]:
        """The documents of all files, in their order."""
        self._forget({file.place for file in files})
        return [self._read(file) for file in files]

    def _read(self, file: SourceFile) -> Documents:
        known = self._known.get(file.place)
        try:
            found = Path(file.file).stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if known is not None and known.stamp == stamp:
                return known.documents
            with Path(file.file).open("rb") as opened:
                data = opened.read(MAX_BYTES + 1)
        except OSError as error:
            stamp = (0, 0, 0)
            if known is not None and known.stamp == stamp:
                return known.documents
            documents = self._before(
                file, Documents(findings=(DocumentFinding(file.place, f"{error.strerror}", True),))
            )
        else:
            documents = objects_of(data, file.place)
            if any(finding.broken for finding in documents.findings):
                documents = self._before(file, documents)
            else:
                self._keep(file, data)
        self._known[file.place] = _Known(stamp=stamp, documents=documents)
        return documents

    def _before(self, file: SourceFile, now: Documents) -> Documents:
        """The objects of the last good text, with the findings of the present one."""
        try:
            before = objects_of(self._copy(file).read_bytes(), file.place)
        except OSError:
            return now
        kept = DocumentFinding(
            file.place, "what it said before goes on until it is mended; `glasslet down` with it removes that"
        )
        return replace(before, findings=(*now.findings, kept))

    def _keep(self, file: SourceFile, data: bytes) -> None:
        path = self._copy(file)
        temporary = path.with_suffix(".new")
        # It may hold Secrets.
        temporary.touch(mode=0o600)
        temporary.write_bytes(data)
        temporary.replace(path)

    def _forget(self, places: set[str]) -> None:
        for place in set(self._known) - places:
            del self._known[place]
        wanted = {_name(place) for place in places}
        for copy in self._copies.glob("*.copy"):
            if copy.name not in wanted:
                copy.unlink(missing_ok=True)

    def _copy(self, file: SourceFile) -> Path:
        return self._copies / _name(file.place)


def _name(place: str) -> str:
    return f"{hashlib.blake2b(place.encode('utf-8', 'surrogateescape'), digest_size=8).hexdigest()}.copy"
