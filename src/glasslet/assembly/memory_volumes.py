"""What the node tells of volumes in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from glasslet.assembly.foundation import Foundation
from glasslet.host.mounts.syscalls import Mounts


def tell_swapped_volumes(foundation: Foundation, stays_in_memory: Callable[[str], bool] | None = None) -> None:
    """An event of the node if it swaps and cannot keep what Secrets and the like are shown in out of that; once, at the
    start. `stays_in_memory(folder)`: whether what is mounted there would be kept out."""
    if not foundation.machine.swap_capacity:
        return
    with tempfile.TemporaryDirectory(prefix="tmpfs-noswap-test-", dir=foundation.root.root_dir) as folder:
        kept = (stays_in_memory or Mounts().keeps_out_of_swap)(folder)
    if not kept:
        text = (
            "The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) "
            "might be swapped to disk and should no longer be considered secure."
        )
        foundation.events.node("Warning", "PossibleMemoryBackedVolumesOnDisk", text)
