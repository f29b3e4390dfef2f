"""The controller service of the CSI driver of the tests: as much as csi-sanity wants of every driver. Its messages are
made here, since the agent has no use for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from glasslet.volumes.csi._generated import csi_pb2

Field = descriptor_pb2.FieldDescriptorProto
_CREATE_DELETE = 1
_FIELDS: dict[str, list[tuple[str, int, str, bool]]] = {
    "ControllerGetCapabilitiesRequest": [],
    "ControllerRpc": [("type", 1, "int32", False)],
    "ControllerServiceCapability": [("rpc", 1, "ControllerRpc", False)],
    "ControllerGetCapabilitiesResponse": [("capabilities", 1, "ControllerServiceCapability", True)],
    "Volume": [("capacity_bytes", 1, "int64", False), ("volume_id", 2, "string", False)],
    "CreateVolumeRequest": [
        ("name", 1, "string", False),
        ("capacity_range", 2, "csi.v1.CapacityRange", False),
        ("volume_capabilities", 3, "csi.v1.VolumeCapability", True),
    ],
    "CreateVolumeResponse": [("volume", 1, "Volume", False)],
    "DeleteVolumeRequest": [("volume_id", 1, "string", False)],
    "DeleteVolumeResponse": [],
    "ValidateVolumeCapabilitiesRequest": [
        ("volume_id", 1, "string", False),
        ("volume_capabilities", 3, "csi.v1.VolumeCapability", True),
    ],
    "Confirmed": [("volume_capabilities", 2, "csi.v1.VolumeCapability", True)],
    "ValidateVolumeCapabilitiesResponse": [("confirmed", 1, "Confirmed", False)],
}
"""Name, number, type and whether it is repeated, of each field (CSI specification, csi.proto)."""


def _messages() -> dict[str, Any]:
    pool = descriptor_pool.Default()
    file = descriptor_pb2.FileDescriptorProto(
        name="tests/csi_controller.proto", package="tests.csi", syntax="proto3", dependency=[csi_pb2.DESCRIPTOR.name]
    )
    scalars = {"string": Field.TYPE_STRING, "int64": Field.TYPE_INT64, "int32": Field.TYPE_INT32}
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
            one = message.field.add(name=field, number=number, label=label)
            if kind in scalars:
                one.type = scalars[kind]
            else:
                one.type = Field.TYPE_MESSAGE
                one.type_name = f".{kind}" if "." in kind else f".tests.csi.{kind}"
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindFileByName(file.name)
    return {name: message_factory.GetMessageClass(found.message_types_by_name[name]) for name in _FIELDS}


MESSAGES = _messages()


class Controller:
    """Volumes by id; an id is `v-<name>`."""

    def __init__(self) -> None:
        self.volumes: dict[str, int] = {}

    def services(self, unary: Callable[[Any, Callable[[Any, Any], Awaitable[Any]]], Any]) -> dict[str, Any]:
        """The handlers by method."""
        answers = {
            "ControllerGetCapabilities": self._capabilities,
            "CreateVolume": self._create,
            "DeleteVolume": self._delete,
            "ValidateVolumeCapabilities": self._validate,
        }
        return {method: unary(MESSAGES[f"{method}Request"], answer) for method, answer in answers.items()}

    async def _capabilities(self, _request: Any, _context: Any) -> Any:
        able = MESSAGES["ControllerServiceCapability"](rpc=MESSAGES["ControllerRpc"](type=_CREATE_DELETE))
        return MESSAGES["ControllerGetCapabilitiesResponse"](capabilities=[able])

    async def _create(self, request: Any, context: Any) -> Any:
        if not request.name or not request.volume_capabilities:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "name and volume_capabilities are needed")
        if len(request.name) > 128:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "name is too long")
        wanted = request.capacity_range
        size = wanted.required_bytes or wanted.limit_bytes
        there = self.volumes.setdefault(f"v-{request.name}", size)
        if there < wanted.required_bytes or (wanted.limit_bytes and there > wanted.limit_bytes):
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, "it has another size")
        volume = MESSAGES["Volume"](capacity_bytes=there, volume_id=f"v-{request.name}")
        return MESSAGES["CreateVolumeResponse"](volume=volume)

    async def _delete(self, request: Any, context: Any) -> Any:
        if not request.volume_id:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "volume_id is missing")
        self.volumes.pop(request.volume_id, None)
        return MESSAGES["DeleteVolumeResponse"]()

    async def _validate(self, request: Any, context: Any) -> Any:
        if not request.volume_id or not request.volume_capabilities:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "volume_id and volume_capabilities are needed")
        if request.volume_id not in self.volumes:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such volume")
        confirmed = MESSAGES["Confirmed"](volume_capabilities=request.volume_capabilities)
        return MESSAGES["ValidateVolumeCapabilitiesResponse"](confirmed=confirmed)
