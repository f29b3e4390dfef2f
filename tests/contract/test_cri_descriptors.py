"""Our message definitions against the real k8s.io/cri-api and k8s.io/kubelet modules: what we define, we define the
same."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from glasslet.devices._generated import deviceplugin_pb2, podresources_alpha_pb2, podresources_pb2
from glasslet.plugin_registry._generated import pluginregistration_pb2
from glasslet.runtime.cri._generated import (
    container_pb2,
    image_pb2,
    image_spec_pb2,
    linux_pb2,
    pod_sandbox_pb2,
    runtime_pb2,
    stats_pb2,
)
from glasslet.runtime.cri.calls import methods_of

pytestmark = pytest.mark.go

CRI = (linux_pb2, image_spec_pb2, container_pb2, pod_sandbox_pb2, image_pb2, stats_pb2, runtime_pb2)
PLUGINS = (deviceplugin_pb2, podresources_pb2, podresources_alpha_pb2, pluginregistration_pb2)
MODULES = (*CRI, *PLUGINS)
PROGRAM = Path(__file__).resolve().parents[1] / "go" / "cri-descriptors"
KINDS = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


@pytest.fixture(scope="module")
def upstream() -> dict[str, Any]:
    """What the real module says of itself."""
    if shutil.which("go") is None:
        pytest.skip("DESCRIPTOR CHECK NOT RUN: Go is not installed")
    listed = subprocess.run(["nice", "go", "run", "."], cwd=PROGRAM, check=False, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    found: dict[str, Any] = json.loads(listed.stdout)
    return found


def ours() -> dict[str, Descriptor]:
    """Our messages by full name, nested ones too."""
    found = {}
    for module in MODULES:
        for message in module.DESCRIPTOR.message_types_by_name.values():
            found[message.full_name] = message
            found.update({nested.full_name: nested for nested in message.nested_types})
    return found


def described(field: FieldDescriptor) -> dict[str, object]:
    """A field as the Go program prints it."""
    kind = field.message_type or field.enum_type
    return {
        "number": field.number,
        "kind": KINDS[field.type],
        "repeated": field.is_repeated,
        "type_name": kind.full_name if kind is not None else "",
    }


def test_every_field_we_define_is_upstreams_in_name_number_type_and_label(upstream: dict[str, Any]) -> None:
    for name, message in ours().items():
        real, fields = upstream["messages"][name], message.fields
        assert {f.name: described(f) for f in fields} == {f.name: real.get(f.name) for f in fields}, name


def test_every_enum_we_define_has_upstreams_values(upstream: dict[str, Any]) -> None:
    for module in MODULES:
        nested = [e for m in module.DESCRIPTOR.message_types_by_name.values() for e in m.enum_types]
        for enum in (*module.DESCRIPTOR.enum_types_by_name.values(), *nested):
            assert {v.name: v.number for v in enum.values} == upstream["enums"][enum.full_name], enum.full_name


@pytest.mark.parametrize("service", ["RuntimeService", "ImageService"])
def test_every_call_of_upstream_is_defined_with_its_messages(upstream: dict[str, Any], service: str) -> None:
    mine = {
        name: (method.request.DESCRIPTOR.full_name, method.response.DESCRIPTOR.full_name)
        for name, method in methods_of(service).items()
    }
    real = {name: (m["input"], m["output"]) for name, m in upstream["services"][f"runtime.v1.{service}"].items()}

    assert mine == real


def test_services_of_plugins_are_upstreams(upstream: dict[str, Any]) -> None:
    for module in PLUGINS:
        for service in module.DESCRIPTOR.services_by_name.values():
            mine = {m.name: (m.input_type.full_name, m.output_type.full_name) for m in service.methods}
            real = {name: (m["input"], m["output"]) for name, m in upstream["services"][service.full_name].items()}
            assert mine == real


def test_messages_of_plugins_are_whole(upstream: dict[str, Any]) -> None:
    for module in PLUGINS:
        for message in module.DESCRIPTOR.message_types_by_name.values():
            assert upstream["messages"][message.full_name].keys() == set(message.fields_by_name), message.full_name


def test_only_events_are_streamed(upstream: dict[str, Any]) -> None:
    methods = upstream["services"]["runtime.v1.RuntimeService"]

    assert [name for name, method in methods.items() if method["stream"]] == ["GetContainerEvents"]


LEFT_OUT = {
    "seccomp_profile_path": {"LinuxSandboxSecurityContext", "LinuxContainerSecurityContext"},
    "windows": {"PodSandboxConfig", "ContainerConfig", "ContainerResources", "PodSandboxStats"}
    | {"UpdateContainerResourcesRequest"},
}


def test_only_windows_and_dropped_fields_are_left_out(upstream: dict[str, Any]) -> None:
    mine = ours()
    missing = {
        (field, name.removeprefix("runtime.v1."))
        for name, fields in upstream["messages"].items()
        if name in mine
        for field in fields
        if field not in mine[name].fields_by_name
    }

    assert missing == {(field, message) for field, messages in LEFT_OUT.items() for message in messages}
