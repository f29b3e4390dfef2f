"""The images that a container needs before it can be created: its own, and those that it mounts as volumes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from glasslet.api.container import Container
from glasslet.exchange.facts import Waiting
from glasslet.exchange.volume import MountedVolume
from glasslet.pods.collaborators import ConfigurationData, Images
from glasslet.pods.failures import Retry, StepFailed
from glasslet.pods.memory import PodMemory
from glasslet.pods.reporting import Reporting
from glasslet.record.stations import Station
from glasslet.runtime.model import Image
from glasslet.runtime.spec import SandboxSpec


class ContainerImages:
    """Brings them onto the node."""

    def __init__(self, *, images: Images, data: ConfigurationData, report: Reporting) -> None:
        self._images = images
        self._data = data
        self._report = report

    async def own(self, memory: PodMemory, container: Container, sandbox: SandboxSpec) -> Image:
        """The container's own image. Raises StepFailed."""
        async with self._report.at(Station.IMAGE, container=container.name, detail=container.image):
            auths = await self._data.credentials(memory.pod, container.image)
            ask_plugins = partial(self._data.plugin_credentials, memory.pod, container.image)
            found = await self._images.ensure(
                memory.pod, container, sandbox=sandbox, auths=auths, ask_plugins=ask_plugins
            )
            if isinstance(found, Image):
                return found
            # Soon after a failed pull the image manager names the time of its next try: then that counts.
            backs_off = found.reason == "ImagePullBackOff"
            raise StepFailed(
                container.name,
                f"{found.reason}: {found.message}",
                retry=Retry.LATER if found.retry_at is None else Retry.SOON,
                retry_at=found.retry_at if backs_off else None,
                waiting=Waiting(reason=found.reason, message=found.message),
            )

    async def mounted(
        self, memory: PodMemory, container: Container, sandbox: SandboxSpec
    ) -> Mapping[str, MountedVolume]:
        """The pod's volumes, those that are images as the runtime calls them, pulled by the same rules as the images of
        containers. Images that this container does not mount are left out. Raises StepFailed."""
        volumes = memory.volumes or {}
        wanted = {mount.name for mount in container.volume_mounts}
        pulled: dict[str, MountedVolume] = {}
        for volume in memory.pod.spec.volumes:
            if volume.image is None or volume.name not in wanted or volume.name not in volumes:
                continue
            policy, reference = volume.image.pull_policy, volume.image.reference
            as_container = replace(container, image=reference, image_pull_policy=policy)
            image = await self.own(memory, as_container, sandbox)
            pulled[volume.name] = replace(volumes[volume.name], image=image.id)
        return {**volumes, **pulled} if pulled else volumes
