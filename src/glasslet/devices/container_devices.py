"""A container's share of its devices: the answers of its plugins put together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from glasslet.devices._generated import deviceplugin_pb2
from glasslet.runtime.spec import ContainerDevices, Device, Mount

K = TypeVar("K")
V = TypeVar("V")


def container_devices(responses: Mapping[str, bytes]) -> tuple[ContainerDevices, tuple[str, ...]]:
    """Puts the answers of all resources (each a ContainerAllocateResponse) together, in order of their names. Of two
    answers about one thing the first counts; the second returned value names contradictions, without values. Raises
    google.protobuf.message.DecodeError."""
    envs: dict[str, str] = {}
    mounts: dict[str, Mount] = {}
    devices: dict[str, Device] = {}
    annotations: dict[str, str] = {}
    cdi: dict[str, None] = {}
    conflicts: list[str] = []
    for resource, response in responses.items():
        answer = deviceplugin_pb2.ContainerAllocateResponse.FromString(response)
        clashes = [
            *_add(envs, sorted(answer.envs.items()), "environment variable"),
            *_add(mounts, ((one.container_path, _mount(one)) for one in answer.mounts), "mount"),
            *_add(devices, ((one.container_path, _device(one)) for one in answer.devices), "device"),
            *_add(annotations, sorted(answer.annotations.items()), "annotation"),
        ]
        cdi |= dict.fromkeys(one.name for one in answer.cdi_devices)
        conflicts += [f"device plugin {resource}: {what} has another value already" for what in clashes]
    together = ContainerDevices(
        envs=tuple(envs.items()),
        mounts=tuple(mounts.values()),
        devices=tuple(devices.values()),
        annotations=annotations,
        cdi_devices=tuple(cdi),
    )
    return together, tuple(conflicts)


def _add(into: dict[K, V], values: Iterable[tuple[K, V]], kind: str) -> list[str]:
    """Adds new entries; returns the names of those that exist with another value."""
    return [f"{kind} {key}" for key, value in values if into.setdefault(key, value) != value]


def _mount(mount: deviceplugin_pb2.Mount) -> Mount:
    return Mount(container_path=mount.container_path, host_path=mount.host_path, readonly=mount.read_only)


def _device(device: deviceplugin_pb2.DeviceSpec) -> Device:
    return Device(container_path=device.container_path, host_path=device.host_path, permissions=device.permissions)
