"""Objects in a folder, for an agent without an API server: `glasslet up` writes what its manifests hold.

    <folder>/api/v1/namespaces/shop/secrets/db      one object as JSON, where the REST API has it

A changed object is seen at the pod's next sync, as with strategy Get of an API server.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import unquote

from glasslet.kubeapi.decoding import UndecodableObject, decode_object
from glasslet.kubeapi.errors import NotDecoded, NotFound, Unavailable

T = TypeVar("T")

FOLDER_VARIABLE = "GLASSLET_OBJECTS"
"""Environment variable that names the folder."""
MAX_BYTES = 3 * 1024 * 1024
"""Of one object. An API server keeps at most 1.5 MiB of it in etcd."""


class BlockingReads(Protocol):
    """Runs a blocking read elsewhere (`host.threads`). `on`: what is read, in words."""

    async def run(self, call: partial[bytes], *, on: str) -> bytes: ...


class ObjectFolder:
    """Reads the objects of a folder. Implements the reading of `protocols.APIClient`."""

    def __init__(self, folder: Path, threads: BlockingReads) -> None:
        self._folder = folder
        self._threads = threads

    async def get(self, path: str, kind: type[T], *, timeout: float | None = None) -> T:
        """The object at a path of the REST API. Raises NotFound, NotDecoded, and Unavailable if the file cannot be
        read."""
        request = f"read of {path}"
        try:
            data = await self._threads.run(partial(_read, self._folder / path.lstrip("/")), on=request)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            *_, resource, name = path.split("/")
            raise NotFound(request, f'{resource} "{unquote(name)}" not found', code=404, reason="NotFound") from None
        except OSError as error:
            raise Unavailable(request, f"its file cannot be read: {error.strerror}") from None
        if len(data) > MAX_BYTES:
            raise Unavailable(request, f"its file has more than {MAX_BYTES} bytes")
        found = decode_object(data, kind)
        if isinstance(found, UndecodableObject):
            raise NotDecoded(request, found)
        return found


def objects_folder(threads: BlockingReads) -> ObjectFolder | None:
    """The folder that the environment names."""
    named = os.environ.get(FOLDER_VARIABLE, "")
    return ObjectFolder(Path(named), threads) if named else None


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)
