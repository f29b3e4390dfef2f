"""Room that the node makes before a pod has to go: dead containers and unused images."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from glasslet.eviction.services import Reclaim
from glasslet.eviction.signals import MEMORY_SIGNALS, Signal
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.garbage.images import ImagesNotCollected

logger = logging.getLogger(__name__)

_NODEFS = frozenset({Signal.NODEFS, Signal.NODEFS_INODES})


def helps(signal: Signal, *, own_image_disk: bool) -> bool:
    """Whether dead containers and unused images are on the disk that the signal is about."""
    if signal in MEMORY_SIGNALS or signal is Signal.PIDS:
        return False
    return not (own_image_disk and signal in _NODEFS)


async def reclaim_disk(reclaim: Reclaim, recorder: Recorder) -> None:
    """Dead containers first, then images. One that fails does not keep the other from its work."""
    steps: dict[str, Callable[[], Awaitable[object]]] = {
        "removal of dead containers": reclaim.containers,
        "removal of unused images": reclaim.images,
    }
    for what, step in steps.items():
        try:
            with recorder.wait(WaitKind.CRI_CALL, on=what):
                await step()
        except (RuntimeCallError, ImagesNotCollected, OSError) as error:
            logger.warning("Eviction manager: reclaim failed", extra={"step": what, "error": str(error)})
