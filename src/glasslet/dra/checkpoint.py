"""The file `dra_manager_state` in the Go kubelet's form: either agent can read the other's. Pure.

    {"Data":"<JSON text>","Checksum":<CRC-32 of the text>}

The text: {"kind":"DRACheckpoint","apiVersion":..,"ClaimInfoStateList":[{"ClaimUID","ClaimName","Namespace",
"PodUIDs":{"<uid>":{}},"DriverState":{"<driver>":{"Devices":[{"PoolName","DeviceName","RequestNames","CDIDeviceIDs"}]}}}]}
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import msgspec

from glasslet.dra.claim_book import ClaimEntry
from glasslet.dra.driver_calls import ClaimId, PreparedDevice

FILE = "dra_manager_state"
_KIND, _VERSION = "DRACheckpoint", "checkpoint.dra.kubelet.k8s.io/v1"


class BadClaimFile(ValueError):
    """The file cannot be trusted; the text says why."""


class _Device(msgspec.Struct, frozen=True):
    pool: str = msgspec.field(name="PoolName", default="")
    device: str = msgspec.field(name="DeviceName", default="")
    requests: tuple[str, ...] | None = msgspec.field(name="RequestNames", default=None)
    cdi_ids: tuple[str, ...] | None = msgspec.field(name="CDIDeviceIDs", default=None)


class _Driver(msgspec.Struct, frozen=True):
    devices: tuple[_Device, ...] | None = msgspec.field(name="Devices", default=None)


class _Nothing(msgspec.Struct, frozen=True):
    pass


class _Claim(msgspec.Struct, frozen=True):
    uid: str = msgspec.field(name="ClaimUID", default="")
    name: str = msgspec.field(name="ClaimName", default="")
    namespace: str = msgspec.field(name="Namespace", default="")
    pods: dict[str, _Nothing] | None = msgspec.field(name="PodUIDs", default=None)
    drivers: dict[str, _Driver] | None = msgspec.field(name="DriverState", default=None)


class _Checkpoint(msgspec.Struct, frozen=True):
    kind: str = _KIND
    version: str = msgspec.field(name="apiVersion", default=_VERSION)
    claims: tuple[_Claim, ...] | None = msgspec.field(name="ClaimInfoStateList", default=None)


class _File(msgspec.Struct, frozen=True):
    data: str = msgspec.field(name="Data")
    checksum: int = msgspec.field(name="Checksum")


def encode(entries: Sequence[ClaimEntry]) -> bytes:
    """The file's content."""
    text = msgspec.json.encode(_Checkpoint(claims=tuple(map(_claim, entries)))).decode()
    return msgspec.json.encode(_File(data=text, checksum=zlib.crc32(text.encode())))


def decode(content: bytes) -> tuple[ClaimEntry, ...]:
    """The claims in the file. Raises BadClaimFile."""
    try:
        file = msgspec.json.decode(content, type=_File)
        data = file.data.encode()
        if file.checksum != zlib.crc32(data):
            raise BadClaimFile(f"checksum is {file.checksum}, its content gives {zlib.crc32(data)}")
        found = msgspec.json.decode(data, type=_Checkpoint)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadClaimFile(f"not readable: {error}") from error
    return tuple(map(_entry, found.claims or ()))


def _claim(entry: ClaimEntry) -> _Claim:
    return _Claim(
        uid=entry.id.uid,
        name=entry.id.name,
        namespace=entry.id.namespace,
        pods={uid: _Nothing() for uid in sorted(entry.pods)},
        drivers={name: _Driver(tuple(map(_device, entry.devices[name])) or None) for name in sorted(entry.devices)},
    )


def _device(device: PreparedDevice) -> _Device:
    return _Device(device.pool, device.device, device.requests or None, device.cdi_ids or None)


def _entry(claim: _Claim) -> ClaimEntry:
    return ClaimEntry(
        id=ClaimId(namespace=claim.namespace, name=claim.name, uid=claim.uid),
        pods=frozenset(claim.pods or ()),
        devices={
            name: tuple(
                PreparedDevice(pool=one.pool, device=one.device, requests=one.requests or (), cdi_ids=one.cdi_ids or ())
                for one in driver.devices or ()
            )
            for name, driver in (claim.drivers or {}).items()
        },
    )
