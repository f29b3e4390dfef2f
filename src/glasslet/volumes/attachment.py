"""Volumes that a controller attaches to nodes, so that a disk for one node is never on two.

The node reports what it uses (`volumesInUse`, which the controller does not detach) and mounts only what the controller
says is attached here (`volumesAttached`). Source: the protocol of the attach/detach controller.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from glasslet.api.node import Node
from glasslet.host.files.layout import RootLayout
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.volumes.iscsi_disks import disks_on_node
from glasslet.volumes.plugin import WAIT_SECONDS, VolumeProblem

_CSI = "kubernetes.io/csi"
LOOK_EVERY = 0.5
"""Seconds between checks of the node, which is watched."""


class NotAttached(VolumeProblem):
    """The controller has not attached the volume to this node."""


class VolumesInUse:
    """Volumes that pods need, and those that are on the node from an earlier run."""

    def __init__(self, *, root: RootLayout) -> None:
        self._root = root
        self._by_pod: dict[str, set[str]] = {}

    def add(self, uid: str, name: str) -> None:
        """The pod needs the volume."""
        self._by_pod.setdefault(uid, set()).add(name)

    def forget(self, uid: str) -> bool:
        """The pod needs none any more. Returns whether it had any."""
        return self._by_pod.pop(uid, None) is not None

    def names(self) -> tuple[str, ...] | None:
        """The names for `volumesInUse`. None where another kubelet left volumes of CSI drivers: what it reported is to
        stay."""
        try:
            with os.scandir(f"{self._root.root_dir}/plugins/{_CSI}") as entries:
                if any(entries):
                    return None
        except OSError:
            # There are none.
            pass
        return tuple(sorted({*disks_on_node(self._root), *(name for names in self._by_pod.values() for name in names)}))


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
