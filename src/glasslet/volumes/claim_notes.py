"""The volumes behind a pod's claims as last read: the pod uses them while the API server does not answer."""

from __future__ import annotations

import logging
from functools import partial

from glasslet.api.codec import decode, encode
from glasslet.api.persistent_volume import PersistentVolume
from glasslet.host.files.layout import RootLayout
from glasslet.host.files.small_files import Intact, make_directory, read_checked, write_checked
from glasslet.host.threads import Threads
from glasslet.volumes.plugin import volume_key

_log = logging.getLogger(__name__)

_PLUGIN = "glasslet/claims"
_PRIVATE = 0o750
_FILE = "volume.json"


class ClaimNotes:
    """One small file for each claim of a pod, in the pod's folder, with which it goes."""

    def __init__(self, *, root: RootLayout, threads: Threads) -> None:
        self._root = root
        self._threads = threads

    async def keep(self, uid: str, volume: str, found: PersistentVolume) -> None:
        """Writes the note, if it changed. Raises OSError."""
        await self._threads.run(
            partial(self._keep, uid, volume, found),
            on=f"volume {volume}: note the volume behind its claim",
            key=volume_key(uid, volume),
        )

    async def read(self, uid: str, volume: str) -> PersistentVolume | None:
        """Returns the note, None without one that can be read. Raises OSError."""
        return await self._threads.run(
            partial(self._read, uid, volume),
            on=f"volume {volume}: read the volume behind its claim",
            key=volume_key(uid, volume),
        )

    def _keep(self, uid: str, volume: str, found: PersistentVolume) -> None:
        if self._read(uid, volume) == found:
            return
        directory = self._root.volume_notes(uid, _PLUGIN, volume)
        make_directory(directory, _PRIVATE)
        write_checked(f"{directory}/{_FILE}", encode(found))

    def _read(self, uid: str, volume: str) -> PersistentVolume | None:
        kept = read_checked(f"{self._root.volume_notes(uid, _PLUGIN, volume)}/{_FILE}")
        if not isinstance(kept, Intact):
            return None
        try:
            return decode(kept.data, PersistentVolume)
        except ValueError as error:
            _log.warning("note about a claim cannot be read", extra={"volume": volume, "error": str(error)})
            return None
