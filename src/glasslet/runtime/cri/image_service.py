"""ImageService over gRPC."""

from __future__ import annotations

from glasslet.runtime.cri._generated import image_pb2, image_spec_pb2
from glasslet.runtime.cri.calls import Calls, refusing_unencodable
from glasslet.runtime.cri.decode import decode_filesystem, decode_image, decode_listed_image, lacking
from glasslet.runtime.cri.encode_sandbox import encode_sandbox
from glasslet.runtime.cri.verbs import Timeouts, Verb
from glasslet.runtime.model import FilesystemUsage, Image, RuntimeDisks
from glasslet.runtime.protocols import RegistryAuth
from glasslet.runtime.spec import SandboxSpec


class CRIImages:
    """`runtime.protocols.ImageService` over one gRPC channel, which may be another than the runtime's."""

    def __init__(self, *, calls: Calls, timeouts: Timeouts) -> None:
        self._calls = calls
        self._timeouts = timeouts

    async def list_images(self) -> tuple[Image, ...]:
        """All images."""
        request = image_pb2.ListImagesRequest()
        answer = await self._calls.call(Verb.LIST_IMAGES, request, timeout=self._timeouts.request)
        return tuple(decode_listed_image(image) for image in answer.images)

    async def image_status(self, image: str, runtime_handler: str = "") -> Image | None:
        """The image of that name, id or digest; None if it is not there."""
        spec = image_spec_pb2.ImageSpec(image=image, runtime_handler=runtime_handler)
        request = image_pb2.ImageStatusRequest(image=spec)
        answer: image_pb2.ImageStatusResponse = await self._calls.call(
            Verb.IMAGE_STATUS, request, timeout=self._timeouts.request
        )
        return decode_image(answer.image) if answer.HasField("image") else None

    async def pull_image(self, image: str, auth: RegistryAuth | None, pod: SandboxSpec | None) -> str:
        """Pulls it for that pod and returns its reference. Cancelling the call is the only limit."""
        with refusing_unencodable(Verb.PULL_IMAGE):
            request = image_pb2.PullImageRequest(
                image=image_spec_pb2.ImageSpec(image=image, annotations=pod.annotations if pod is not None else None),
                auth=_auth(auth),
                sandbox_config=encode_sandbox(pod) if pod is not None else None,
            )
        answer: image_pb2.PullImageResponse = await self._calls.call(Verb.PULL_IMAGE, request, timeout=None)
        if not answer.image_ref:
            raise lacking(Verb.PULL_IMAGE, "image_ref")
        return answer.image_ref

    async def remove_image(self, image: str, runtime_handler: str = "") -> None:
        """Removes it with all its names; nothing happens if it is not there."""
        spec = image_spec_pb2.ImageSpec(image=image, runtime_handler=runtime_handler)
        request = image_pb2.RemoveImageRequest(image=spec)
        await self._calls.call(Verb.REMOVE_IMAGE, request, timeout=self._timeouts.request)

    async def image_filesystems(self) -> tuple[FilesystemUsage, ...]:
        """The file systems of images, and their usage."""
        return (await self.disks()).images

    async def disks(self) -> RuntimeDisks:
        """The file systems of images and of writable layers, and their usage."""
        request = image_pb2.ImageFsInfoRequest()
        answer = await self._calls.call(Verb.IMAGE_FS_INFO, request, timeout=self._timeouts.request)
        return RuntimeDisks(
            images=tuple(decode_filesystem(usage) for usage in answer.image_filesystems),
            containers=tuple(decode_filesystem(usage) for usage in answer.container_filesystems),
        )


def _auth(auth: RegistryAuth | None) -> image_pb2.AuthConfig | None:
    if auth is None:
        return None
    return image_pb2.AuthConfig(
        username=auth.username,
        password=auth.password,
        auth=auth.auth,
        identity_token=auth.identity_token,
        registry_token=auth.registry_token,
    )
