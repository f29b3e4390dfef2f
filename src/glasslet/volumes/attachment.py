"""Volumes that a controller attaches to nodes, so that a disk for one node is never on two.

The node reports what it uses (`volumesInUse`, which the controller does not detach) and mounts only what the controller
says is attached here (`volumesAttached`). Source: the protocol of the attach/detach controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from glasslet.api.node import Node
from glasslet.host.files.layout import RootLayout
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.volumes.csi.places import CSIPlaces, unique_name
from glasslet.volumes.iscsi_disks import disks_on_node
from glasslet.volumes.plugin import WAIT_SECONDS, VolumeProblem

LOOK_EVERY = 0.5
"""Seconds between checks of the node, which is watched."""


class NotAttached(VolumeProblem):
    """The controller has not attached the volume to this node."""


class VolumesInUse:
    """Volumes that pods need, and those that are on the node from an earlier run. `attaches`: whether a controller
    attaches a CSI driver's volumes."""

    def __init__(self, *, root: RootLayout, attaches: Callable[[str], bool]) -> None:
        self._root = root
        self._places = CSIPlaces(root)
        self._attaches = attaches
        self._by_pod: dict[str, set[str]] = {}

    def add(self, uid: str, name: str) -> None:
        """The pod needs the volume."""
        self._by_pod.setdefault(uid, set()).add(name)

    def forget(self, uid: str) -> bool:
        """The pod needs none any more. Returns whether it had any."""
        return self._by_pod.pop(uid, None) is not None

    def names(self) -> tuple[str, ...] | None:
        """The names for `volumesInUse`: also what is staged and published to no pod any more."""
        needed = (name for names in self._by_pod.values() for name in names)
        return tuple(sorted({*disks_on_node(self._root), *self._of_drivers(), *needed}))

    def _of_drivers(self) -> Iterator[str]:
        staged = (note for _, note in self._places.all_staged())
        published = (note for _, note in self._places.all_published())
        for note in (*staged, *published):
            if not note.inline and self._attaches(note.driver):
                yield unique_name(note.driver, note.handle)


class ControllerAttachment:
    """Waits for the controller. `node`: this node as the API server has it; `changed` has it reported soon."""

    def __init__(
        self, *, in_use: VolumesInUse, node: Callable[[], Node], changed: Callable[[], None], recorder: Recorder
    ) -> None:
        self._in_use = in_use
        self._node = node
        self._changed = changed
        self._recorder = recorder

    async def wait(self, uid: str, name: str, *, here: bool) -> None:
        """Until the volume is reported as used and attached to this node. A pod that has it already (`here`) does not
        wait: after a restart of the agent the API server may not answer. Raises NotAttached."""
        self._in_use.add(uid, name)
        if here or self._is_attached(name):
            return
        self._changed()
        try:
            with self._recorder.wait(WaitKind.VOLUME, on=f"volume {name}: attached by the controller"):
                async with asyncio.timeout(WAIT_SECONDS):
                    while not self._is_attached(name):  # noqa: ASYNC110 - the node changes by its watch
                        await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            raise NotAttached(f"volume {name} is not attached according to the node's status") from None

    def forget(self, uid: str) -> None:
        """The pod has no volumes on this node any more."""
        if self._in_use.forget(uid):
            self._changed()

    def _is_attached(self, name: str) -> bool:
        status = self._node().status
        return name in status.volumes_in_use and any(one.name == name for one in status.volumes_attached)
