"""Room that the node makes before a pod has to go: dead containers and unused images."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

from glasslet.eviction.services import Reclaim
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.garbage.images import ImagesNotCollected

logger = logging.getLogger(__name__)


async def reclaim_disk(reclaim: Reclaim, garbage: Iterable[str], recorder: Recorder) -> None:
    """Removes these kinds of garbage (`signals.OnDisk`). One that fails does not keep the other from its work."""
    steps: dict[str, Callable[[], Awaitable[object]]] = {
        "dead containers": reclaim.containers,
        "unused images": reclaim.images,
    }
    for kind in garbage:
        what, step = f"removal of {kind}", steps[kind]
        try:
            with recorder.wait(WaitKind.CRI_CALL, on=what):
                await step()
        except (RuntimeCallError, ImagesNotCollected, OSError) as error:
            logger.warning("Eviction manager: reclaim failed", extra={"step": what, "error": str(error)})
