"""The file `kubelet_internal_checkpoint`: the device allocations, in the Go kubelet's form. Pure.

    {"Data":{"PodDeviceEntries":[{"PodUID":..,"ContainerName":..,"ResourceName":..,"DeviceIDs":{"<numa>":["<id>"]},
     "AllocResp":"<base64>"}],"RegisteredDevices":{"<resource>":["<id>"]}},"Checksum":<FNV-1a 32>}

The checksum is over a dump of the Go values, see `_text`: either agent can read the other's file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from glasslet.devices.allocations import Allocation, Owner
from glasslet.host.files.go_checksum import fnv_1a

FILE = "kubelet_internal_checkpoint"


class BadCheckpoint(ValueError):
    """The file cannot be trusted; the text says why."""


class _Entry(msgspec.Struct, frozen=True):
    pod_uid: str = msgspec.field(name="PodUID", default="")
    container: str = msgspec.field(name="ContainerName", default="")
    resource: str = msgspec.field(name="ResourceName", default="")
    devices: dict[int, list[str] | None] | None = msgspec.field(name="DeviceIDs", default=None)
    response: bytes | None = msgspec.field(name="AllocResp", default=None)


class _Data(msgspec.Struct, frozen=True):
    entries: list[_Entry] | None = msgspec.field(name="PodDeviceEntries", default=None)
    registered: dict[str, list[str] | None] | None = msgspec.field(name="RegisteredDevices", default=None)


class _File(msgspec.Struct, frozen=True):
    data: _Data = msgspec.field(name="Data", default=_Data())
    checksum: int = msgspec.field(name="Checksum", default=0)


class Checkpoint(msgspec.Struct, frozen=True):
    """`registered`: resources whose plugins were known."""

    allocations: Mapping[Owner, Allocation]
    registered: tuple[str, ...] = ()


class KnownDevices(msgspec.Struct, frozen=True):
    """A snapshot for the file. `registered`: ids of healthy devices by resource."""

    allocations: tuple[tuple[Owner, Allocation], ...]
    registered: Mapping[str, frozenset[str]]


def encode(known: KnownDevices) -> bytes:
    """The file's content. The checksum takes half a second for 100,000 devices."""
    data = _Data(
        entries=[
            _Entry(
                pod_uid=owner.uid,
                container=owner.container,
                resource=owner.resource,
                devices={node: list(names) for node, names in one.by_node.items()},
                response=one.response,
            )
            for owner, one in known.allocations
        ],
        registered={name: sorted(known.registered[name]) for name in sorted(known.registered)},
    )
    return msgspec.json.encode(_File(data=data, checksum=fnv_1a(_text(data))))


def decode(content: bytes) -> Checkpoint:
    """Decodes the file. Raises BadCheckpoint."""
    try:
        file = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadCheckpoint(f"not readable: {error}") from error
    expected = fnv_1a(_text(file.data))
    if file.checksum != expected:
        raise BadCheckpoint(f"checksum is {file.checksum}, its content gives {expected}")
    allocations = {
        Owner(entry.pod_uid, entry.container, entry.resource): Allocation(
            by_node={node: tuple(names or ()) for node, names in (entry.devices or {}).items()},
            response=entry.response or b"",
        )
        for entry in file.data.entries or ()
    }
    return Checkpoint(allocations, tuple(file.data.registered or ()))


def _text(data: _Data) -> str:
    """The dump under the checksum: a Go type before each field, none inside maps and slices."""
    entries = _slice(data.entries, _entry)
    registered = _map(data.registered, str)
    return (
        f"(checkpoint.checkpointData){{PodDeviceEntries:([]checkpoint.PodDevicesEntry){entries} "
        f"RegisteredDevices:(map[string][]string){registered}}}"
    )


def _entry(entry: _Entry) -> str:
    return (
        f"{{PodUID:(string){entry.pod_uid} ContainerName:(string){entry.container} "
        f"ResourceName:(string){entry.resource} DeviceIDs:(checkpoint.DevicesPerNUMA){_map(entry.devices, str)} "
        f"AllocResp:([]uint8){_slice(entry.response, str)}}}"
    )


def _slice(values: Sequence[Any] | None, write: Callable[[Any], str]) -> str:
    return "<nil>" if values is None else f"[{' '.join(map(write, values))}]"


def _map(values: Mapping[Any, Sequence[str] | None] | None, write: Callable[[Any], str]) -> str:
    if values is None:
        return "<nil>"
    return f"map[{' '.join(f'{write(key)}:{_slice(values[key], str)}' for key in sorted(values))}]"
