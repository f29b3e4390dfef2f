"""A manifest that uses every field survives decoding and encoding, and no field of a pod is missing in it."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import fields

from glasslet.api.codec import convert, decode, encode, to_plain
from glasslet.api.container import ContainerRestartRule, ContainerRestartRuleOnExitCodes, EphemeralContainer
from glasslet.api.pod import Pod, PodSchedulingGate, PodSpec
from glasslet.api.security import WindowsSecurityContextOptions
from glasslet.config.documents import load_file

EVERYTHING = Path(__file__).parents[2] / "data/manifests/everything.yaml"
NOT_VALID_IN_LINUX_MANIFESTS = {
    EphemeralContainer, WindowsSecurityContextOptions, ContainerRestartRule, ContainerRestartRuleOnExitCodes,
    PodSchedulingGate,
}  # fmt: skip
FIELDS_OF_THEIRS = {
    (PodSpec, "ephemeral_containers"), (PodSpec, "hostname_override"), (PodSpec, "scheduling_gates"),
}  # fmt: skip


def everything() -> Any:
    return load_file(str(EVERYTHING))[0].value


def structs_in(value: Any) -> Iterator[Struct]:
    if isinstance(value, Struct):
        yield value
        for name in value.__struct_fields__:
            yield from structs_in(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from structs_in(item)


def struct_types(kind: Any) -> Iterator[type[Struct]]:
    seen: set[type[Struct]] = set()
    queue = [kind]
    while queue:
        one = queue.pop()
        if isinstance(one, type) and issubclass(one, Struct):
            if one not in seen:
                seen.add(one)
                queue += typing.get_type_hints(one).values()
        else:
            queue += typing.get_args(one)
    return iter(seen)


SPEC_TYPES = sorted(set(struct_types(PodSpec)) - NOT_VALID_IN_LINUX_MANIFESTS, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", SPEC_TYPES, ids=lambda kind: kind.__name__)
def test_the_manifest_sets_every_field_of(kind: type[Struct]) -> None:
    used = [one for one in structs_in(convert(everything(), Pod)) if type(one) is kind]
    for field in fields(kind):
        if (kind, field.name) in FIELDS_OF_THEIRS or field.name in ("windows_options", "restart_policy_rules"):
            continue
        empty = kind().__getattribute__(field.name)
        assert any(getattr(one, field.name) != empty for one in used), field.name


def test_decoding_and_encoding_lose_nothing() -> None:
    pod = convert(everything(), Pod)
    assert decode(encode(pod), Pod) == pod
    assert sorted(leaves(to_plain(pod))) == sorted(leaves(everything()))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every leaf that is not the zero value: those are left out when writing."""
    if isinstance(value, dict):
        for key, held in value.items():
            yield from leaves(held, f"{path}.{key}")
    elif isinstance(value, list):
        for number, held in enumerate(value):
            yield from leaves(held, f"{path}[{number}]")
    elif value not in ("", 0, False):
        yield path, str(value)
