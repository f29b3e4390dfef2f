"""Records of pulls on disk: `<root-dir>/image_manager/pulling` and `/pulled`, a file for each. Everything blocks."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from glasslet.host.files.small_files import read_regular, write_atomically
from glasslet.runtime.images.pull_records import (
    BadRecord,
    PulledRecord,
    PullIntent,
    decode_intent,
    decode_record,
    encode_intent,
    encode_record,
    file_name,
)

logger = logging.getLogger(__name__)

_LONGEST = 16 << 20
_PRIVATE = 0o700
T = TypeVar("T")


class PullRecordFiles:
    """Reads and writes them. All methods raise OSError; those that read one file raise BadRecord."""

    def __init__(self, root_dir: str) -> None:
        self._pulling = f"{root_dir}/image_manager/pulling"
        self._pulled = f"{root_dir}/image_manager/pulled"

    def intend(self, image: str) -> None:
        """A pull of this image begins."""
        _write(self._pulling, image, encode_intent(image))

    def intended(self, image: str) -> bool:
        """Whether a pull of the image began and its end was never recorded."""
        data = _read(f"{self._pulling}/{file_name(image)}")
        return data is not None and decode_intent(data).image == image

    def forget_intent(self, image: str) -> None:
        """Removes the intent: the pull has ended."""
        _remove(f"{self._pulling}/{file_name(image)}")

    def intents(self) -> tuple[PullIntent, ...]:
        """All intents; a file that cannot be read is logged and left out."""
        return tuple(_all(self._pulling, decode_intent))

    def record(self, image_ref: str) -> PulledRecord | None:
        """The record of an image, by the runtime's id; None if there is none."""
        data = _read(f"{self._pulled}/{file_name(image_ref)}")
        found = None if data is None else decode_record(data)
        return found if found is not None and found.image_ref == image_ref else None

    def write(self, record: PulledRecord) -> None:
        """Replaces the record of the image."""
        _write(self._pulled, record.image_ref, encode_record(record))

    def remove(self, image_ref: str) -> None:
        """Drops the record of a removed image."""
        _remove(f"{self._pulled}/{file_name(image_ref)}")

    def records(self) -> tuple[PulledRecord, ...]:
        """All records; a file that cannot be read is logged and left out."""
        return tuple(_all(self._pulled, decode_record))


def _write(folder: str, subject: str, data: bytes) -> None:
    os.makedirs(folder, mode=_PRIVATE, exist_ok=True)
    write_atomically(f"{folder}/{file_name(subject)}", data)


def _read(path: str) -> bytes | None:
    try:
        return read_regular(path, most=_LONGEST)
    except FileNotFoundError:
        return None


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _all(folder: str, decode: Callable[[bytes], T]) -> Iterator[T]:
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        if not name.startswith("sha256-") or name.endswith(".tmp"):
            continue
        try:
            data = _read(f"{folder}/{name}")
            if data is not None:
                yield decode(data)
        except (OSError, BadRecord) as error:
            logger.warning("record of a pull cannot be read", extra={"path": f"{folder}/{name}", "error": str(error)})
