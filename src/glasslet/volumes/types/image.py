"""image: the files of an image, mounted by the runtime; the plugin only names the image."""

from __future__ import annotations

from glasslet.api.volume import ImageVolumeSource
from glasslet.exchange.volume import MountedVolume
from glasslet.volumes.plugin import VolumeRequest


class ImageVolume:
    """The plugin, for nodes with the gate ImageVolume. The image is pulled when a container needs it."""

    name = "kubernetes.io/image"
    local = True

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Names the image."""
        source = request.volume.image or ImageVolumeSource()
        return MountedVolume(name=request.volume.name, image=source.reference, read_only=True)

    async def tear_down(self, uid: str, volume: str) -> None:
        """The runtime unmounts it with its container."""
