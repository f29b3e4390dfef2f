"""containerd's content store, on the same socket as its CRI: which layers it downloads, and which are there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Any, Final

import msgspec
from google.protobuf.message import DecodeError, Message
from grpc.aio import AioRpcError, Channel
from msgspec import Struct, field

from glasslet.runtime.cri._generated import containerd_content_pb2 as content_pb2
from glasslet.runtime.cri.containerd_events import NAMESPACE
from glasslet.runtime.cri.status_codes import translate
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import UNREADABLE, RuntimeRejected
from glasslet.runtime.images.progress import MAX_LAYERS, Ingest, Layer, layer_of_ref
from glasslet.runtime.images.reference import ImageName

ANSWER_WITHIN: Final = 2.0
"""Seconds for each call: figures that come late are of no use."""
MAX_MANIFEST: Final = 4 << 20
"""Bytes of a manifest, as registries limit them."""
MAX_CANDIDATES: Final = 8
"""Manifests of one repository that are read to find the one whose layers come in."""
_SOURCE_LABEL = "containerd.io/distribution.source."
_CHILD_LABEL = "containerd.io/gc.ref.content"
_MOST_BYTES = 1 << 62


class ContainerdContent:
    """`runtime.images.progress_watch.PullContent` of containerd. Every call raises RuntimeCallError, with code
    UNIMPLEMENTED where the runtime is no containerd."""

    def __init__(self, *, channel: Channel) -> None:
        service = "/containerd.services.content.v1.Content/"
        self._statuses = channel.unary_unary(
            f"{service}ListStatuses", request_serializer=content_pb2.ListStatusesRequest.SerializeToString
        )
        self._list = channel.unary_stream(
            f"{service}List", request_serializer=content_pb2.ListContentRequest.SerializeToString
        )
        self._read = channel.unary_stream(
            f"{service}Read", request_serializer=content_pb2.ReadContentRequest.SerializeToString
        )

    async def layer_ingests(self) -> tuple[Ingest, ...]:
        """The layers that are downloaded now, of all images."""
        request = content_pb2.ListStatusesRequest()
        try:
            answer = content_pb2.ListStatusesResponse.FromString(
                await self._statuses(request, timeout=ANSWER_WITHIN, metadata=_METADATA)
            )
        except DecodeError as error:
            raise _unreadable() from error
        except AioRpcError as error:
            raise translate(Verb.PULL_IMAGE, error.code(), error.details() or "") from error
        return tuple(
            Ingest(digest, _size(status.offset), _size(status.total))
            for status in answer.statuses
            if (digest := layer_of_ref(status.ref))
        )

    async def layers_of(self, image: ImageName, arriving: Collection[str]) -> tuple[Layer, ...] | None:
        """The layers of the image, by the newest manifest of its repository that has one of the layers `arriving`.
        None if there is no such manifest."""
        host = image.domain.rpartition(":")[0] or image.domain
        label = _SOURCE_LABEL + host.strip("[]")
        infos = [
            info
            for info in await self._infos((f'labels."{label}"',))
            if image.path in info.labels[label].split(",")
            and any(key.startswith(_CHILD_LABEL) for key in info.labels)
            and 0 < info.size <= MAX_MANIFEST
        ]
        infos.sort(key=lambda info: (info.digest == image.digest, info.updated_at.ToNanoseconds()), reverse=True)
        for info in infos[:MAX_CANDIDATES]:
            layers = layers_of_manifest(await self._content(info.digest, info.size))
            if any(layer.digest in arriving for layer in layers):
                return layers
        return None

    async def present(self, digests: Sequence[str]) -> frozenset[str]:
        """Those of these layers whose content is there."""
        filters = tuple(f'digest=="{digest}"' for digest in digests)
        return frozenset(info.digest for info in await self._infos(filters)) if filters else frozenset()

    async def _infos(self, filters: tuple[str, ...]) -> list[content_pb2.Info]:
        request = content_pb2.ListContentRequest(filters=filters)
        answers = self._stream(self._list, request, content_pb2.ListContentResponse)
        return [info async for answer in answers for info in answer.info]

    async def _content(self, digest: str, size: int) -> bytes:
        request = content_pb2.ReadContentRequest(digest=digest, size=size)
        found = bytearray()
        async for answer in self._stream(self._read, request, content_pb2.ReadContentResponse):
            found += answer.data
            if len(found) > MAX_MANIFEST:
                break
        return bytes(found)

    async def _stream(self, method: Any, request: Message, kind: Any) -> AsyncGenerator[Any, None]:
        call = method(request, timeout=ANSWER_WITHIN, metadata=_METADATA)
        try:
            async for answer in call:
                yield kind.FromString(answer)
        except DecodeError as error:
            raise _unreadable() from error
        except AioRpcError as error:
            raise translate(Verb.PULL_IMAGE, error.code(), error.details() or "") from error
        finally:
            call.cancel()


_METADATA = (("containerd-namespace", NAMESPACE),)


def _unreadable() -> RuntimeRejected:
    return RuntimeRejected("content store", "the runtime's answer cannot be decoded", code=UNREADABLE)


class _ManifestLayer(Struct, frozen=True):
    digest: str = ""
    size: int = 0


class _Manifest(Struct, frozen=True):
    layers: list[_ManifestLayer] = field(default_factory=list)


def layers_of_manifest(text: bytes) -> tuple[Layer, ...]:
    """The layers of a manifest, each once; none if it is no manifest, or one with more layers than can be mounted."""
    try:
        manifest = msgspec.json.decode(text, type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    if len(manifest.layers) > MAX_LAYERS:
        return ()
    sizes = {layer.digest: _size(layer.size) for layer in manifest.layers if layer.digest}
    return tuple(Layer(digest, size) for digest, size in sizes.items())


def _size(number: int) -> int:
    return number if 0 <= number <= _MOST_BYTES else 0
