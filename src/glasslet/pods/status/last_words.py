"""Termination messages of ended containers, read once per instance."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.pods.collaborators import FilesOfPods
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner.instances import as_container
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.runtime.model import ContainerPhase, ObservedPod

SHOWN = 2
"""Instances per container: the API shows state and lastState."""


class LastWords:
    """Reads termination messages into a pod's memory."""

    def __init__(self, *, files: FilesOfPods, recorder: Recorder) -> None:
        self._files = files
        self._recorder = recorder

    async def read(self, memory: PodMemory, observed: ObservedPod | None) -> None:
        """Reads new messages; forgets instances that were removed."""
        known, fresh = memory.termination_messages, {}
        spec = memory.pod.spec
        ephemeral = map(as_container, spec.ephemeral_containers)
        for container in (*spec.init_containers, *spec.containers, *ephemeral):
            instances = observed.instances(container.name) if observed else ()
            for instance in instances[:SHOWN]:
                if instance.phase is not ContainerPhase.EXITED:
                    continue
                if (message := known.get(instance.id)) is None:
                    try:
                        # The runtime's own words are joined where the status is built, not here.
                        silent = replace(instance, message="")
                        message = await self._files.termination_message(memory.pod, container, silent)
                    except OSError as error:
                        why = f"termination message of {container.name} could not be read: {error.strerror}"
                        memory.unread.setdefault(instance.id, StandingFinding(self._recorder, pod=memory.ref)).is_(why)
                        message = ""
                fresh[instance.id] = message
        memory.termination_messages = fresh
        for removed in [instance for instance in memory.unread if instance not in fresh]:
            memory.unread.pop(removed).over()
