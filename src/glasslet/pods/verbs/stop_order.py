"""Who gets the signal when, while a whole pod stops: regular containers at once, sidecars after them in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from glasslet.api.pod import Pod
from glasslet.pods.planner.sidecars import is_sidecar
from glasslet.pods.verbs.kill_container import Turn


class StopOrder:
    """The order for one stop of one pod; `running`: names of the containers that are being stopped."""

    def __init__(self, pod: Pod, running: Iterable[str]) -> None:
        names = set(running)
        self._ended = {name: asyncio.Event() for name in names}
        regular = [container.name for container in pod.spec.containers if container.name in names]
        self._before: dict[str, list[str]] = {}
        later = regular
        for container in reversed(pod.spec.init_containers):
            if is_sidecar(container) and container.name in names:
                self._before[container.name] = list(later)
                later = [*later, container.name]

    def turn(self, name: str) -> Turn | None:
        """What this container waits for; None: nothing."""
        before = self._before.get(name)
        if not before:
            return None

        async def wait_for_those_before() -> None:
            for other in before:
                await self._ended[other].wait()

        return wait_for_those_before

    def ended(self, name: str) -> None:
        """The container has ended, or could not be stopped: those after it need not wait any longer."""
        self._ended[name].set()
