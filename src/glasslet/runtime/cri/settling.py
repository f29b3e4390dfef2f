"""Does the CRI know of an exit yet? Asked after containerd told of one, before anybody re-reads the pod."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from glasslet.runtime.cri._generated import container_pb2, pod_sandbox_pb2
from glasslet.runtime.cri.calls import Calls
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeCallError

_ANSWER_WITHIN = 1.0


class ExitSettled:
    """Asks the CRI about ids, which may be containers' or sandboxes': all at once, however many."""

    def __init__(self, *, calls: Calls) -> None:
        self._calls = calls

    async def __call__(self, subjects: Collection[str]) -> Collection[str]:
        """Those that the CRI does not say to run. A runtime that cannot answer does not hold hints back."""
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                return await self._over(subjects)
        except (RuntimeCallError, TimeoutError):
            return subjects

    async def _over(self, subjects: Collection[str]) -> Collection[str]:
        only = next(iter(subjects)) if len(subjects) == 1 else ""
        of_containers = container_pb2.ListContainersRequest(filter=container_pb2.ContainerFilter(id=only))
        containers = await self._calls.call(Verb.LIST_CONTAINERS, of_containers, timeout=_ANSWER_WITHIN)
        states = {c.id: c.state == container_pb2.CONTAINER_RUNNING for c in containers.containers}
        if not all(subject in states for subject in subjects):
            of_sandboxes = pod_sandbox_pb2.ListPodSandboxRequest(filter=pod_sandbox_pb2.PodSandboxFilter(id=only))
            sandboxes = await self._calls.call(Verb.LIST_POD_SANDBOX, of_sandboxes, timeout=_ANSWER_WITHIN)
            states |= {s.id: s.state == pod_sandbox_pb2.SANDBOX_READY for s in sandboxes.items}
        return {subject for subject in subjects if not states.get(subject, False)}
