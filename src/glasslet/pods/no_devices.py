"""Devices of an agent without device plugins: there are none."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.exchange.admission import Rejected
from glasslet.runtime.spec import ContainerDevices


class NoDevices:
    """Implements `collaborators.Devices`."""

    async def allocate(self, pod: Pod) -> Rejected | None:
        """Nothing is to be had, and nothing is refused: who has no devices does not know of them."""
        return None

    async def prepare(self, pod: Pod, container: Container) -> ContainerDevices:
        """Nothing is given."""
        return ContainerDevices()
