"""The file `memory_manager_state` in the Go kubelet's form: either agent can read the other's file. Pure.

{"policyName":"Static","machineState":{"0":{"numberOfAssignments":1,"memoryMap":{"memory":{"total":..,"systemReserved":..,
 "allocatable":..,"reserved":..,"free":..}},"cells":[0]}},
 "entries":{"<pod uid>":{"<container>":[{"numaAffinity":[0],"type":"memory","size":..}]}},"checksum":<FNV-1a 32>}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from glasslet.host.files.go_checksum import fnv_1a
from glasslet.managers.cpu_checkpoint import BadStateFile
from glasslet.managers.memory_state import Block, MemoryState, MemoryTable, NodeMemory

FILE = "memory_manager_state"


class _Table(msgspec.Struct, frozen=True):
    total: int = 0
    system: int = msgspec.field(name="systemReserved", default=0)
    allocatable: int = 0
    reserved: int = 0
    free: int = 0


class _Node(msgspec.Struct, frozen=True):
    assignments: int = msgspec.field(name="numberOfAssignments", default=0)
    tables: dict[str, _Table] = msgspec.field(name="memoryMap", default_factory=dict)
    group: list[int] = msgspec.field(name="cells", default_factory=list)


class _Block(msgspec.Struct, frozen=True):
    nodes: list[int] = msgspec.field(name="numaAffinity", default_factory=list)
    resource: str = msgspec.field(name="type", default="")
    size: int = 0


class _File(msgspec.Struct, frozen=True):
    policy: str = msgspec.field(name="policyName", default="")
    machine: dict[int, _Node] = msgspec.field(name="machineState", default_factory=dict)
    entries: dict[str, dict[str, list[_Block]]] = msgspec.field(default_factory=dict)
    checksum: int = 0


def encode(policy: str, state: MemoryState) -> bytes:
    """The file's content."""
    file = _File(
        policy=policy,
        machine={node: _node(own) for node, own in sorted(state.machine.items(), key=lambda one: str(one[0]))},
        entries={
            uid: {name: [_Block(list(one.nodes), one.resource, one.size) for one in blocks] for name, blocks in own}
            for uid, own in ((uid, sorted(containers.items())) for uid, containers in sorted(state.entries.items()))
            if own
        },
    )
    content: dict[str, Any] = {"policyName": policy, "machineState": file.machine}
    if file.entries:
        content["entries"] = file.entries
    return msgspec.json.encode({**content, "checksum": fnv_1a(_text(file))})


def decode(content: bytes, *, policy: str) -> MemoryState:
    """The state that the file tells. Raises BadStateFile."""
    try:
        file = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadStateFile(f"not readable: {error}") from error
    if file.checksum != fnv_1a(_text(file)):
        raise BadStateFile("checkpoint is corrupted")
    if file.policy != policy:
        text = f'configured policy "{policy}" differs from state checkpoint policy "{file.policy}"'
        raise BadStateFile(f"[memorymanager] {text}")
    machine = {
        node: NodeMemory(
            assignments=own.assignments,
            tables={name: MemoryTable(**msgspec.structs.asdict(table)) for name, table in own.tables.items()},
            group=tuple(own.group),
        )
        for node, own in file.machine.items()
    }
    entries = {
        uid: {
            name: tuple(Block(nodes=tuple(one.nodes), resource=one.resource, size=one.size) for one in blocks)
            for name, blocks in containers.items()
        }
        for uid, containers in file.entries.items()
    }
    return MemoryState(machine=machine, entries=entries)


def _node(own: NodeMemory) -> _Node:
    tables = {name: _Table(**msgspec.structs.asdict(table)) for name, table in sorted(own.tables.items())}
    return _Node(own.assignments, tables, list(own.group))


def _text(file: _File) -> str:
    """The dump under the checksum: a Go type before each field, none inside maps and slices."""
    nodes = " ".join(f"{node}:<*>{_node_text(own)}" for node, own in sorted(file.machine.items()))
    entries = " ".join(f"{uid}:{_containers_text(own)}" for uid, own in sorted(file.entries.items()))
    return (
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){file.policy} "
        f"MachineState:(state.NUMANodeMap)map[{nodes}] Entries:(state.ContainerMemoryAssignments)map[{entries}] "
        "Checksum:(checksum.Checksum)0}"
    )


def _node_text(own: _Node) -> str:
    tables = " ".join(f"{name}:<*>{_table_text(table)}" for name, table in sorted(own.tables.items()))
    return (
        f"{{NumberOfAssignments:(int){own.assignments} "
        f"MemoryMap:(map[v1.ResourceName]*state.MemoryTable)map[{tables}] Cells:([]int){_list(own.group)}}}"
    )


def _table_text(table: _Table) -> str:
    return (
        f"{{TotalMemSize:(uint64){table.total} SystemReserved:(uint64){table.system} "
        f"Allocatable:(uint64){table.allocatable} Reserved:(uint64){table.reserved} Free:(uint64){table.free}}}"
    )


def _containers_text(containers: Mapping[str, list[_Block]]) -> str:
    return f"map[{' '.join(f'{name}:[{_blocks_text(blocks)}]' for name, blocks in sorted(containers.items()))}]"


def _blocks_text(blocks: list[_Block]) -> str:
    return " ".join(
        f"{{NUMAAffinity:([]int){_list(one.nodes)} Type:(v1.ResourceName){one.resource} Size:(uint64){one.size}}}"
        for one in blocks
    )


def _list(numbers: list[int]) -> str:
    return f"[{' '.join(map(str, numbers))}]"
