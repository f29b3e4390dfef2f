"""What lies before a pod's first step: its turn among pods of one name, room on the node, its devices."""

from __future__ import annotations

from glasslet.api.pod import Pod
from glasslet.exchange.admission import Rejected
from glasslet.pods.collaborators import Devices
from glasslet.pods.making_room import Victim, wait_for_room
from glasslet.pods.name_queue import NameQueue
from glasslet.pods.reporting import Reporting


class Entrance:
    """One pod's way in. It may be passed any number of times; what is passed once is open from then on."""

    def __init__(self, *, names: NameQueue, devices: Devices, report: Reporting) -> None:
        self.victims: tuple[Victim, ...] = ()
        """Pods that have to end before this one begins."""
        self._names = names
        self._devices: Devices | None = devices
        self._report = report

    def queue(self, pod: Pod) -> None:
        """The pod wants to run: it takes its place among those of its name."""
        self._names.enter(pod)

    def leave(self, pod: Pod) -> None:
        """The pod has ended: it is the next one's turn."""
        self._names.leave(pod)

    async def enter(self, pod: Pod) -> Rejected | None:
        """Waits until the pod may begin. What it is rejected with, None if it may."""
        await self._names.wait_for_turn(pod)
        await wait_for_room(self.victims, self._report)
        self.victims = ()
        return await self._get_devices(pod)

    async def _get_devices(self, pod: Pod) -> Rejected | None:
        """The last part of admission: plugins are asked, once in the pod's life. A pod without its devices fails."""
        if self._devices is None:
            return None
        refusal = await self._devices.allocate(pod)
        self._devices = None
        return refusal
