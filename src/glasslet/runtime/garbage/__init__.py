"""Removing what pods leave behind in the runtime and in the log folders.

    collector = GarbageCollector(runtime=..., observed=..., pods=..., logs=..., folders=..., ...)
    await collector.run()                       every minute, and right after container deaths
    await collector.collect(evicting=True)      when the node needs space

`rules.py` decides and is pure.
"""

from __future__ import annotations

from glasslet.runtime.garbage.collector import GarbageCollector, LogKeeper, ObservedRuntime, PodStates
from glasslet.runtime.garbage.log_folders import LogFolders
from glasslet.runtime.garbage.rules import (
    DeadContainerLimits,
    containers_to_remove,
    instances_to_trim,
    sandboxes_to_remove,
)

__all__ = [
    "DeadContainerLimits",
    "GarbageCollector",
    "LogFolders",
    "LogKeeper",
    "ObservedRuntime",
    "PodStates",
    "containers_to_remove",
    "instances_to_trim",
    "sandboxes_to_remove",
]
