"""The committed messages are what the .proto files say."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

import glasslet

SOURCE = Path(glasslet.__file__).parent
OWNERS = sorted(folder.parent.relative_to(SOURCE.parent) for folder in SOURCE.rglob("protos"))
PROTOS = [(str(owner), path.stem) for owner in OWNERS for path in sorted((SOURCE.parent / owner / "protos").iterdir())]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FileDescriptorProto]:
    """What the compiler reads from the .proto files, by name."""
    protoc = pytest.importorskip("grpc_tools.protoc")
    target = tmp_path_factory.mktemp("protos") / "all.pb"
    include = Path(protoc.__file__).parent / "_proto"
    files = [f"{owner}/_generated/{name}.proto" for owner, name in PROTOS]
    folders = [f"-I{owner}/_generated={SOURCE.parent / owner}/protos" for owner in OWNERS]
    assert protoc.main(["protoc", *folders, f"-I{include}", f"-o{target}", *files]) == 0
    found = FileDescriptorSet.FromString(target.read_bytes())
    return {Path(file.name).stem: without_json_names(file) for file in found.file}


def without_json_names(file: FileDescriptorProto) -> FileDescriptorProto:
    """Names for JSON follow from the fields' names; the compiler writes them into one of its outputs only."""
    messages = list(file.message_type)
    while messages:
        message = messages.pop()
        messages.extend(message.nested_type)
        for field in message.field:
            field.ClearField("json_name")
    return file


@pytest.mark.parametrize(("owner", "name"), PROTOS)
def test_generated_code_is_current(compiled: dict[str, FileDescriptorProto], owner: str, name: str) -> None:
    module = importlib.import_module(f"{owner.replace('/', '.')}._generated.{name}_pb2")
    committed = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(committed)

    assert without_json_names(committed) == compiled[name], "run scripts/generate_protos"
