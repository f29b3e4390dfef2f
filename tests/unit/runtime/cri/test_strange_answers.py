"""No answer of a runtime, however strange, does more than be refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from glasslet.api.object import SandboxID
from glasslet.runtime.cri._generated import container_pb2, image_pb2, pod_sandbox_pb2, runtime_pb2, stats_pb2
from glasslet.runtime.cri.decode import (
    decode_container,
    decode_filesystem,
    decode_image,
    decode_listed_container,
    decode_listed_image,
    decode_listed_sandbox,
    decode_runtime_status,
    decode_sandbox,
    decode_sandbox_image,
)
from glasslet.runtime.cri.decode_stats import decode_container_usage, decode_sandbox_usage
from glasslet.runtime.errors import RuntimeRejected
from glasslet.runtime.images.plugin_messages import PluginFailed, parse_answer

DECODERS: list[tuple[type[Message], Callable[[Any], object]]] = [
    (pod_sandbox_pb2.PodSandboxStatus, decode_sandbox),
    (pod_sandbox_pb2.PodSandbox, decode_listed_sandbox),
    (container_pb2.ContainerStatus, lambda status: decode_container(status, SandboxID("s"))),
    (container_pb2.Container, decode_listed_container),
    (image_pb2.Image, decode_image),
    (image_pb2.Image, decode_listed_image),
    (image_pb2.FilesystemUsage, decode_filesystem),
    (runtime_pb2.StatusResponse, decode_runtime_status),
    (runtime_pb2.StatusResponse, decode_sandbox_image),
    (stats_pb2.ContainerStats, decode_container_usage),
    (stats_pb2.PodSandboxStats, decode_sandbox_usage),
]
_EDGES: dict[int, Sequence[Any]] = {
    FieldDescriptor.CPPTYPE_INT32: [-(2**31), -1, 0, 1, 2**31 - 1],
    FieldDescriptor.CPPTYPE_INT64: [-(2**63), -1, 0, 1, 2**63 - 1],
    FieldDescriptor.CPPTYPE_UINT32: [0, 1, 2**32 - 1],
    FieldDescriptor.CPPTYPE_UINT64: [0, 1, 2**64 - 1],
    FieldDescriptor.CPPTYPE_ENUM: [-(2**31), -1, 0, 1, 7, 2**31 - 1],
    FieldDescriptor.CPPTYPE_BOOL: [False, True],
    FieldDescriptor.CPPTYPE_DOUBLE: [float("nan"), float("inf"), -1.0],
    FieldDescriptor.CPPTYPE_FLOAT: [float("nan"), float("inf"), -1.0],
}
_TEXTS = ["", "x", "\x00", "../..", "é\u2028", "9" * 5000, "[" * 5000, "{", "main"]


def fill(message: Message, draw: Callable[[st.SearchStrategy[Any]], Any], depth: int = 4) -> None:
    """Sets some fields to values at the edge of what the wire can carry."""
    for field in message.DESCRIPTOR.fields:
        if not draw(st.booleans()) and depth < 4:
            continue
        repeated = field.is_repeated
        if field.message_type is not None:
            if depth and field.message_type.GetOptions().map_entry:
                getattr(message, field.name).update({"k": "v"} if _is_text_map(field) else {})
            elif depth:
                part = getattr(message, field.name).add() if repeated else getattr(message, field.name)
                part.SetInParent()
                fill(part, draw, depth - 1)
        else:
            value = draw(st.sampled_from(_values(field)))
            getattr(message, field.name).append(value) if repeated else setattr(message, field.name, value)


def _is_text_map(field: Any) -> bool:
    entry = field.message_type
    return bool(entry.fields_by_name["value"].cpp_type == FieldDescriptor.CPPTYPE_STRING)


def _values(field: Any) -> Sequence[Any]:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return [text.encode() for text in _TEXTS] if field.type == FieldDescriptor.TYPE_BYTES else _TEXTS
    return _EDGES[field.cpp_type]


@pytest.mark.parametrize(("kind", "decode"), DECODERS, ids=lambda one: getattr(one, "__name__", ""))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_decoder_takes_or_refuses(
    kind: type[Message], decode: Callable[[Any], object], data: st.DataObject
) -> None:
    message = kind()
    fill(message, data.draw)
    with suppress(RuntimeRejected):
        decode(message)


def test_long_texts_of_a_container_are_cut() -> None:
    status = container_pb2.ContainerStatus(id="c", created_at=1, image_ref="i", reason="r" * 10**6, message="m" * 10**6)
    status.metadata.name, status.image.image = "main", "busybox"
    decoded = decode_container(status, SandboxID("s"))
    assert (len(decoded.reason), len(decoded.message)) == (1033, 32777)


def test_a_runtime_configuration_that_is_nested_deeply_names_no_sandbox_image() -> None:
    assert decode_sandbox_image(runtime_pb2.StatusResponse(info={"config": "[" * 100_000})) == ""


_ANSWER = {
    "kind": "CredentialProviderResponse",
    "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
    "cacheKeyType": "Image",
    "cacheDuration": "1h",
    "auth": {"registry.example": {"username": "u", "password": "p"}},
}
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["9" * 400 + "h"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(_ANSWER)), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(field=st.sampled_from(list(_ANSWER)), value=_JSON)
def test_a_credential_plugin_s_answer_is_taken_or_refused(field: str, value: object) -> None:
    with suppress(PluginFailed):
        parse_answer(json.dumps({**_ANSWER, field: value}).encode(), "credentialprovider.kubelet.k8s.io/v1")


@pytest.mark.parametrize("answer", [b"[" * 100_000, b'{"x":' * 100_000, b"\xff", b""])
def test_a_credential_plugin_s_answer_that_is_no_json_is_refused(answer: bytes) -> None:
    with pytest.raises(PluginFailed):
        parse_answer(answer, "credentialprovider.kubelet.k8s.io/v1")
