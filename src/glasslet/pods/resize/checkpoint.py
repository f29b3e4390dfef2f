"""The files `allocated_pods_state` and `actuated_pods_state` in the Go kubelet's form, so that either can go on after
the other. Pure.

    {"data": "<JSON in a string>", "checksum": n}, and in the string
    {"entries": {<uid>: {"ContainerResources": {<container>: {"limits": .., "requests": ..}}}}}
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from glasslet.api.codec import DecodeError, decode, encode
from glasslet.api.container import ResourceRequirements
from glasslet.api.object import PodUID
from glasslet.host.files.go_checksum import fnv_1a

ByPod = Mapping[PodUID, Mapping[str, ResourceRequirements]]


class _Pod(msgspec.Struct, frozen=True):
    resources: dict[str, ResourceRequirements] = msgspec.field(default_factory=dict, name="ContainerResources")


class _Entries(msgspec.Struct, frozen=True):
    entries: dict[str, _Pod] = {}


class _File(msgspec.Struct, frozen=True):
    data: str
    checksum: int


class DamagedCheckpoint(ValueError):
    """The file is not what was written."""


def dump(pods: ByPod) -> bytes:
    """The content of a file."""
    entries = _Entries({uid: _Pod(dict(resources)) for uid, resources in pods.items()})
    data = encode(entries).decode()
    return encode(_File(data, checksum(data)))


def load(content: bytes) -> dict[PodUID, dict[str, ResourceRequirements]]:
    """The pods in a file's content. Raises DamagedCheckpoint."""
    try:
        file = decode(content, _File)
        if file.checksum != checksum(file.data):
            raise DamagedCheckpoint(f"checksum is {checksum(file.data)}, the file says {file.checksum}")
        found = decode(file.data.encode(), _Entries)
    except DecodeError as error:
        raise DamagedCheckpoint(str(error)) from error
    return {PodUID(uid): dict(pod.resources) for uid, pod in found.entries.items()}


def checksum(data: str) -> int:
    """The checksum of the data as the Go kubelet prints it for this purpose."""
    return fnv_1a(f"(string){data}")
