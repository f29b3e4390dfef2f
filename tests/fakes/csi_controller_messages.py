"""Messages of a CSI driver's controller service, by name. They are made here, since the agent has no use for them."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from glasslet.volumes.csi._generated import csi_pb2

Field = descriptor_pb2.FieldDescriptorProto
_CAPACITY = ("capacity_range", "csi.v1.CapacityRange")
_FIELDS: dict[str, list[tuple[str, int, str, bool]]] = {
    "ControllerGetCapabilitiesRequest": [],
    "ControllerRpc": [("type", 1, "int32", False)],
    "ControllerServiceCapability": [("rpc", 1, "ControllerRpc", False)],
    "ControllerGetCapabilitiesResponse": [("capabilities", 1, "ControllerServiceCapability", True)],
    "SnapshotSource": [("snapshot_id", 1, "string", False)],
    "VolumeSource": [("volume_id", 1, "string", False)],
    "VolumeContentSource": [("snapshot", 1, "SnapshotSource", False), ("volume", 2, "VolumeSource", False)],
    "Volume": [
        ("capacity_bytes", 1, "int64", False),
        ("volume_id", 2, "string", False),
        ("content_source", 4, "VolumeContentSource", False),
    ],
    "CreateVolumeRequest": [
        ("name", 1, "string", False),
        (_CAPACITY[0], 2, _CAPACITY[1], False),
        ("volume_capabilities", 3, "csi.v1.VolumeCapability", True),
        ("volume_content_source", 6, "VolumeContentSource", False),
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
    "ControllerPublishVolumeRequest": [
        ("volume_id", 1, "string", False),
        ("node_id", 2, "string", False),
        ("volume_capability", 3, "csi.v1.VolumeCapability", False),
        ("readonly", 4, "bool", False),
    ],
    "ControllerPublishVolumeResponse": [],
    "ControllerUnpublishVolumeRequest": [("volume_id", 1, "string", False), ("node_id", 2, "string", False)],
    "ControllerUnpublishVolumeResponse": [],
    "ControllerExpandVolumeRequest": [
        ("volume_id", 1, "string", False),
        (_CAPACITY[0], 2, _CAPACITY[1], False),
    ],
    "ControllerExpandVolumeResponse": [
        ("capacity_bytes", 1, "int64", False),
        ("node_expansion_required", 2, "bool", False),
    ],
    "Snapshot": [
        ("size_bytes", 1, "int64", False),
        ("snapshot_id", 2, "string", False),
        ("source_volume_id", 3, "string", False),
        ("creation_time", 4, "google.protobuf.Timestamp", False),
        ("ready_to_use", 5, "bool", False),
    ],
    "CreateSnapshotRequest": [("source_volume_id", 1, "string", False), ("name", 2, "string", False)],
    "CreateSnapshotResponse": [("snapshot", 1, "Snapshot", False)],
    "DeleteSnapshotRequest": [("snapshot_id", 1, "string", False)],
    "DeleteSnapshotResponse": [],
}
"""Name, number, type and whether it is repeated, of each field that the drivers of the tests use (csi.proto)."""


def _messages() -> dict[str, Any]:
    pool = descriptor_pool.Default()
    file = descriptor_pb2.FileDescriptorProto(
        name="tests/csi_controller.proto",
        package="tests.csi",
        syntax="proto3",
        dependency=[csi_pb2.DESCRIPTOR.name, timestamp_pb2.DESCRIPTOR.name],
    )
    scalars = {
        "string": Field.TYPE_STRING,
        "int64": Field.TYPE_INT64,
        "int32": Field.TYPE_INT32,
        "bool": Field.TYPE_BOOL,
    }
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
