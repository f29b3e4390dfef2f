"""Reports out-of-memory kills of the kernel: SystemOOM on the node, and on the pod whose process was killed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Final, Protocol

from glasslet.api.pod_ref import PodRef
from glasslet.host.kernel_log import kernel_messages
from glasslet.node.oom import OomKill, OomParser, kill_words, system_oom
from glasslet.node.reporting import NodeEvents
from glasslet.record.recorder import Recorder, working_for
from glasslet.runtime.model import ObservedPod

logger = logging.getLogger(__name__)

AGAIN: Final = 30.0
"""Seconds until a log that broke off is opened again."""
_UNREADABLE = "out-of-memory kills are not reported: the kernel's log cannot be read"


class OOMEvents(Protocol):
    """Where API events about a pod go."""

    def __call__(self, pod: PodRef, kind: str, reason: str, message: str, /) -> None: ...


class OomWatch:
    """One per node. `pods`: those that the runtime holds; `messages`: opens the kernel's log."""

    def __init__(
        self,
        *,
        pods: Callable[[], Iterable[ObservedPod]],
        node_events: NodeEvents,
        pod_events: OOMEvents,
        recorder: Recorder,
        messages: Callable[[], AsyncGenerator[str, None]] = kernel_messages,
    ) -> None:
        self._pods = pods
        self._node_events = node_events
        self._pod_events = pod_events
        self._recorder = recorder
        self._messages = messages
        self._problem = ""

    async def run(self) -> None:
        """Until cancelled. Kills from before the start were reported by the agent that ran then."""
        while True:
            try:
                await self._follow()
            except OSError as error:
                self._problem = f"{_UNREADABLE}: {error.strerror}"
                self._recorder.finding(self._problem)
            await asyncio.sleep(AGAIN)

    async def _follow(self) -> None:
        parser = OomParser()
        async with aclosing(self._messages()) as messages:
            async for line in messages:
                if self._problem:
                    self._recorder.withdrawn(self._problem)
                    self._problem = ""
                if (kill := parser.take(line)) is not None:
                    self._report(kill)

    def _report(self, kill: OomKill) -> None:
        fields = {"killed": kill.process, "pid": kill.pid, "limit": kill.limit, "cgroup": kill.victim}
        logger.warning("out-of-memory kill", extra=fields)
        if kill.of_system:
            self._node_events("Warning", "SystemOOM", system_oom(kill))
            self._recorder.observed("memory", "", system_oom(kill))
        if (found := owner(kill.victim, self._pods())) is not None:
            pod, container, container_id = found
            words = kill_words(kill, container, container_id)
            with working_for(pod, container=container):
                self._pod_events(pod, "Warning", "OOMKilling", words)
                self._recorder.observed("memory", "", words, container=container)


def owner(cgroup: str, pods: Iterable[ObservedPod]) -> tuple[PodRef, str, str] | None:
    """The pod, the container and its id that this cgroup belongs to. Runtimes have the id in the name of a container's
    cgroup. The outermost one counts: below it a container may make cgroups with any name, such as another's id."""
    known = [(container.id, pod, container) for pod in pods for container in pod.containers]
    for name in cgroup.split("/"):
        for container_id, pod, container in known if name else ():
            if container_id in name:
                return PodRef(pod.namespace, pod.name, pod.uid), container.name, container_id
    return None
