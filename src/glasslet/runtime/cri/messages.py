"""The protobuf messages of every RPC: which goes in, which comes out, under which path. Read from the descriptors."""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from glasslet.runtime.cri._generated import image_pb2, runtime_pb2


class Method(NamedTuple):
    """One RPC."""

    path: str
    request: type[Message]
    response: type[Message]


def methods_of(service: str) -> dict[str, Method]:
    """All RPCs of `RuntimeService` or `ImageService`, by name."""
    for module in (runtime_pb2, image_pb2):
        if (found := module.DESCRIPTOR.services_by_name.get(service)) is not None:
            return {
                method.name: Method(
                    f"/{found.full_name}/{method.name}",
                    GetMessageClass(method.input_type),
                    GetMessageClass(method.output_type),
                )
                for method in found.methods
            }
    raise KeyError(service)
