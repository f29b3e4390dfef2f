"""What a pod's worker works with: runtime, images, volumes, files, cgroups."""

from __future__ import annotations

from functools import partial

from glasslet.api.object import ContainerID
from glasslet.assembly.pod_parts import PodParts
from glasslet.assembly.runtime import RuntimeSide
from glasslet.assembly.runtime_handlers import build_runtime_handlers
from glasslet.assembly.sides import Sides
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.services import PodServices
from glasslet.runtime.errors import RuntimeCallError


def build_pod_services(sides: Sides, parts: PodParts, allocations: Allocations) -> PodServices:
    """All of it, from the sides of the agent."""
    runtime = sides.runtime
    return PodServices(
        runtime=runtime.connection.runtime,
        observed=runtime.observed,
        images=runtime.images,
        volumes=parts.volumes,
        files=parts.files,
        cgroups=parts.cgroups.pods,
        node=parts.needs.node,
        data=parts.configuration.data,
        handlers=build_runtime_handlers(sides.foundation, runtime, parts.files),
        devices=sides.devices.manager,
        network_error=runtime.conditions.network_error,
        cgroup_lost=parts.cgroups.lost,
        allocations=allocations,
        memory_in_use=partial(_memory_in_use, runtime),
    )


async def _memory_in_use(runtime: RuntimeSide, container: ContainerID) -> int | None:
    try:
        used = await runtime.connection.runtime.container_stats(container)
    except RuntimeCallError as error:
        if error.code == "UNIMPLEMENTED":
            return None
        raise
    return None if used.memory is None else used.memory.usage or used.memory.working_set
