"""The file `cpu_manager_state` in the Go kubelet's form: either agent can read the other's file. Pure.

    {"policyName":"static","defaultCpuSet":"0","entries":{"<pod uid>":{"<container>":"1"}},"checksum":<FNV-1a 32>}

A file of 2019 and before names containers by their id alone; those that still run keep their CPUs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from glasslet.host.files.go_checksum import fnv_1a
from glasslet.managers.cpu_sets import cpu_text, read_cpu_text
from glasslet.managers.cpu_state import CPUState

FILE = "cpu_manager_state"

ContainerIds = Mapping[str, tuple[str, str]]
"""Pod UID and container name by container id, as the runtime has them."""


class BadStateFile(ValueError):
    """The file cannot be used; the text says why."""


class _File(msgspec.Struct, frozen=True, omit_defaults=True):
    policy: str = msgspec.field(name="policyName", default="")
    shared: str = msgspec.field(name="defaultCpuSet", default="")
    entries: dict[str, dict[str, str] | str] = msgspec.field(default_factory=dict)
    checksum: int = 0


def encode(policy: str, state: CPUState) -> bytes:
    """The file's content."""
    entries = {
        uid: {name: cpu_text(cpus) for name, cpus in sorted(containers.items())}
        for uid, containers in sorted(state.entries.items())
        if containers
    }
    content: dict[str, Any] = {"policyName": policy, "defaultCpuSet": cpu_text(state.shared)}
    if entries:
        content["entries"] = entries
    content["checksum"] = fnv_1a(_text(content["policyName"], content["defaultCpuSet"], entries))
    return msgspec.json.encode(content)


def decode(content: bytes, *, policy: str, ids: ContainerIds) -> CPUState:
    """The state that the file tells. Raises BadStateFile."""
    try:
        file = msgspec.json.decode(_folded(content), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError) as error:
        raise BadStateFile(f"not readable: {error}") from error
    # A checksum of 0 stands for none.
    if file.checksum and file.checksum != fnv_1a(_text(file.policy, file.shared, file.entries)):
        raise BadStateFile("checkpoint is corrupted")
    if file.policy != policy:
        raise BadStateFile(f'configured policy "{policy}" differs from state checkpoint policy "{file.policy}"')
    try:
        shared = read_cpu_text(file.shared)
    except ValueError as error:
        raise BadStateFile(f'could not parse default cpu set "{file.shared}": {error}') from error
    entries: dict[str, dict[str, frozenset[int]]] = {}
    for uid, name, text in _entries(file, ids):
        try:
            entries.setdefault(uid, {})[name] = read_cpu_text(text)
        except ValueError as error:
            where = f'for container "{name}" in pod "{uid}"'
            raise BadStateFile(f'could not parse cpuset "{text}" {where}: {error}') from error
    return CPUState(shared=shared, entries=entries)


def _entries(file: _File, ids: ContainerIds) -> list[tuple[str, str, str]]:
    found = []
    for key, value in file.entries.items():
        if isinstance(value, dict):
            found += [(key, name, text) for name, text in value.items()]
        elif key in ids:
            found.append((*ids[key], value))
    return found


def _folded(content: bytes) -> bytes:
    """Go reads keys in whatever case."""
    names = {name.lower(): name for name in ("policyName", "defaultCpuSet", "entries", "checksum")}
    found = msgspec.json.decode(content, type=dict[str, Any])
    return msgspec.json.encode(
        {names.get(key.lower(), key): value for key, value in found.items() if value is not None}
    )


def _text(policy: str, shared: str, entries: Mapping[str, Any]) -> str:
    """The dump under the checksum: a Go type before each field, none inside maps."""
    old = any(isinstance(value, str) for value in entries.values())
    kind = "map[string]string" if old else "map[string]map[string]string"
    parts = " ".join(
        f"{uid}:{value if isinstance(value, str) else _map(value)}" for uid, value in sorted(entries.items())
    )
    return (
        f"(*state.CPUManagerCheckpoint){{PolicyName:(string){policy} DefaultCPUSet:(string){shared} "
        f"Entries:({kind})map[{parts}] Checksum:(checksum.Checksum)0}}"
    )


def _map(values: Mapping[str, str]) -> str:
    return f"map[{' '.join(f'{key}:{values[key]}' for key in sorted(values))}]"
