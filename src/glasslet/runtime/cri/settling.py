"""Does the CRI know of an exit yet? Asked after containerd told of one, before anybody re-reads the pod."""

from __future__ import annotations

import asyncio

from glasslet.runtime.cri._generated import container_pb2, pod_sandbox_pb2
from glasslet.runtime.cri.calls import Calls
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeCallError

_ANSWER_WITHIN = 1.0


class ExitSettled:
    """Asks the CRI about one id, which may be a container's or a sandbox's."""

    def __init__(self, *, calls: Calls) -> None:
        self._calls = calls

    async def __call__(self, subject: str) -> bool:
        """False while the CRI still says that it runs. A runtime that cannot answer does not hold a hint back."""
        try:
            return not await self._runs(subject)
        except (RuntimeCallError, TimeoutError):
            return True

    async def _runs(self, subject: str) -> bool:
        async with asyncio.timeout(_ANSWER_WITHIN):
            of_container = container_pb2.ListContainersRequest(filter=container_pb2.ContainerFilter(id=subject))
            containers = await self._calls.call(Verb.LIST_CONTAINERS, of_container, timeout=_ANSWER_WITHIN)
            if containers.containers:
                return any(c.state == container_pb2.CONTAINER_RUNNING for c in containers.containers)
            of_sandbox = pod_sandbox_pb2.ListPodSandboxRequest(filter=pod_sandbox_pb2.PodSandboxFilter(id=subject))
            sandboxes = await self._calls.call(Verb.LIST_POD_SANDBOX, of_sandbox, timeout=_ANSWER_WITHIN)
            return any(s.state == pod_sandbox_pb2.SANDBOX_READY for s in sandboxes.items)
