"""Folders of deleted pods: the agent was away while they ended, or the node was rebooted. A worker unmounts their
volumes and removes the folders, as for any pod; a folder that is still mounted stays."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.record.recorder import Recorder
from glasslet.runtime.model import ObservedPod

logger = logging.getLogger(__name__)

PERIOD = 10.0
"""Seconds between sweeps. The Go kubelet sweeps every 2 s; these folders do no harm meanwhile."""


class Folders(Protocol):
    """Folders of pods on this node (`host.pod_files`)."""

    def uids_on_disk(self) -> Sequence[PodUID]: ...

    def whose(self, uid: PodUID) -> PodRef | None:
        """Whose folder it is, as far as that can be seen; None for one that is no pod's."""


class LivingPods(Protocol):
    """What must be known of pods before their folders are removed."""

    def all_known(self) -> bool:
        """Every source has reported its pods, and the runtime what it runs: before that, nothing is an orphan."""

    def alive(self, uid: PodUID) -> bool:
        """Whether a source wants the pod, a worker has it, or the runtime holds something of it."""

    def content_removable(self, uid: PodUID) -> bool:
        """Whether no worker has the pod."""


class OrphanFolders:
    """Looks every ten seconds. `swept` gets the numbers of orphans found and of those that were found before."""

    def __init__(
        self,
        *,
        folders: Folders,
        pods: LivingPods,
        stop: Callable[[ObservedPod], None],
        recorder: Recorder,
        swept: Callable[[int, int], None] = lambda found, left: None,
    ) -> None:
        self._folders = folders
        self._pods = pods
        self._stop = stop
        self._recorder = recorder
        self._swept = swept
        self._in_hand: set[PodUID] = set()
        self._reported: set[PodUID] = set()

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(PERIOD)

    def look(self) -> None:
        """Gives each new orphan to a worker, and says which of the earlier ones are still there."""
        if not self._pods.all_known():
            return
        found = set(self._folders.uids_on_disk())
        left = {uid for uid in self._in_hand & found if not self._pods.content_removable(uid)}
        self._report(left)
        self._in_hand &= left
        for uid in found - left:
            if not self._pods.alive(uid) and (ref := self._folders.whose(uid)) is not None:
                logger.info("orphaned pod folder", extra={"podUID": uid, "pod": str(ref)})
                self._in_hand.add(uid)
                self._stop(ObservedPod(uid=uid, name=ref.name, namespace=ref.namespace))
        self._swept(len(self._in_hand), len(left))

    def _report(self, left: set[PodUID]) -> None:
        for uid in self._reported - left:
            self._recorder.withdrawn(_text(uid))
        for uid in left:
            self._recorder.finding(_text(uid))
        self._reported = left


def _text(uid: PodUID) -> str:
    return f'orphaned pod "{uid}" found, but volumes are not cleaned up'
