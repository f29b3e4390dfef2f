"""The client of containerd's content store, against a server that answers as a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from glasslet.runtime.cri._generated import containerd_content_pb2 as content_pb2
from glasslet.runtime.cri.connection import CHANNEL_OPTIONS
from glasslet.runtime.cri.containerd_content import ContainerdContent, layers_of_manifest
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.images.progress import MAX_LAYERS, Ingest, Layer
from glasslet.runtime.images.reference import parse_image_name

APP = parse_image_name("registry.example.com:5000/team/app:1")
LABEL = "containerd.io/distribution.source.registry.example.com"


def manifest(*layers: tuple[str, int]) -> bytes:
    return json.dumps({"layers": [{"digest": digest, "size": size} for digest, size in layers]}).encode()


class Store:
    """A content store. `blobs`: content and labels by digest, the newest last."""

    def __init__(self) -> None:
        self.blobs: dict[str, tuple[bytes, dict[str, str]]] = {}
        self.statuses: list[content_pb2.Status] = []
        self.namespaces: set[str] = set()

    def add(self, digest: str, content: bytes, repositories: str = "team/app") -> None:
        self.blobs[digest] = (content, {LABEL: repositories, "containerd.io/gc.ref.content.config": "sha256:c"})

    async def list_statuses(self, _: bytes, context: Any) -> bytes:
        self.namespaces |= {value for key, value in context.invocation_metadata() if key == "containerd-namespace"}
        return content_pb2.ListStatusesResponse(statuses=self.statuses).SerializeToString()

    async def list(self, request: bytes, _: Any) -> AsyncIterator[bytes]:
        filters = content_pb2.ListContentRequest.FromString(request).filters
        for number, (digest, (content, labels)) in enumerate(self.blobs.items()):
            if any(f'digest=="{digest}"' == one or any(f'labels."{key}"' == one for key in labels) for one in filters):
                info = content_pb2.Info(digest=digest, size=len(content), labels=labels)
                info.updated_at.seconds = number
                yield content_pb2.ListContentResponse(info=[info]).SerializeToString()

    async def read(self, request: bytes, _: Any) -> AsyncIterator[bytes]:
        content = self.blobs[content_pb2.ReadContentRequest.FromString(request).digest][0]
        for start in range(0, len(content), 10):
            yield content_pb2.ReadContentResponse(offset=start, data=content[start : start + 10]).SerializeToString()

    @asynccontextmanager
    async def client(self, folder: Path, *, implemented: bool = True) -> AsyncIterator[ContainerdContent]:
        server = grpc.aio.server()
        if implemented:
            handlers = {
                "ListStatuses": grpc.unary_unary_rpc_method_handler(self.list_statuses),
                "List": grpc.unary_stream_rpc_method_handler(self.list),
                "Read": grpc.unary_stream_rpc_method_handler(self.read),
            }
            service = "containerd.services.content.v1.Content"
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        server.add_insecure_port(f"unix:{folder / 's'}")
        await server.start()
        channel = grpc.aio.insecure_channel(f"unix:{folder / 's'}", options=CHANNEL_OPTIONS)
        try:
            yield ContainerdContent(channel=channel)
        finally:
            await channel.close()
            await server.stop(None)
            await asyncio.sleep(0.02)


async def test_only_downloads_of_layers_in_the_namespace_of_the_cri_count(tmp_path: Path) -> None:
    store = Store()
    store.statuses = [
        content_pb2.Status(ref="layer-sha256:a", offset=3, total=9),
        content_pb2.Status(ref="manifest-sha256:m", offset=1, total=1),
        content_pb2.Status(ref="layer-sha256:odd", offset=-1, total=-9),
    ]
    async with store.client(tmp_path) as content:
        assert await content.layer_ingests() == (Ingest("sha256:a", 3, 9), Ingest("sha256:odd", 0, 0))
    assert store.namespaces == {"k8s.io"}


async def test_an_image_s_layers_are_those_of_the_newest_manifest_with_a_layer_that_comes_in(tmp_path: Path) -> None:
    store = Store()
    store.add("sha256:old", manifest(("sha256:a", 1), ("sha256:gone", 7)))
    store.add("sha256:new", manifest(("sha256:a", 1), ("sha256:b", 2)), "other/app,team/app")
    store.add("sha256:else", manifest(("sha256:a", 1)), "team/application")
    store.add("sha256:latest", manifest(("sha256:z", 1)))
    async with store.client(tmp_path) as content:
        assert await content.layers_of(APP, {"sha256:a"}) == (Layer("sha256:a", 1), Layer("sha256:b", 2))
        assert await content.layers_of(APP, {"sha256:unknown"}) is None


async def test_the_manifest_of_the_name_s_digest_comes_first(tmp_path: Path) -> None:
    digest = f"sha256:{'0a' * 32}"
    store = Store()
    store.add(digest, manifest(("sha256:a", 1)))
    store.add("sha256:new", manifest(("sha256:a", 1), ("sha256:b", 2)))
    async with store.client(tmp_path) as content:
        found = await content.layers_of(parse_image_name(f"registry.example.com:5000/team/app@{digest}"), {"sha256:a"})
    assert found == (Layer("sha256:a", 1),)


async def test_layers_that_are_there_are_found_by_digest(tmp_path: Path) -> None:
    store = Store()
    store.blobs["sha256:a"] = b"x", {}
    async with store.client(tmp_path) as content:
        assert await content.present(["sha256:a", "sha256:b"]) == {"sha256:a"}
        assert await content.present([]) == frozenset()


async def test_a_runtime_that_is_no_containerd_says_so(tmp_path: Path) -> None:
    async with Store().client(tmp_path, implemented=False) as content:
        with pytest.raises(RuntimeCallError) as refused:
            await content.layer_ingests()
        assert refused.value.code == "UNIMPLEMENTED"
        with pytest.raises(RuntimeCallError):
            await content.present(["sha256:a"])


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"layers": 7}', b'{"layers": [{"size": "x"}]}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_manifest_has_no_layers(text: bytes) -> None:
    assert layers_of_manifest(text) == ()


def test_a_manifest_has_each_layer_once_with_a_size_that_can_be() -> None:
    layers = manifest(("sha256:a", 3), ("sha256:a", 3), ("sha256:b", -1), ("", 4), ("sha256:c", 1 << 63))
    assert layers_of_manifest(layers) == (Layer("sha256:a", 3), Layer("sha256:b", 0), Layer("sha256:c", 0))
    assert layers_of_manifest(manifest(*((f"sha256:{n}", 1) for n in range(MAX_LAYERS + 1)))) == ()
