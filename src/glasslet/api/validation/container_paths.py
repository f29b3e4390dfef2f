"""Every container of a pod with its field path."""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.api.container import Container, EphemeralContainer
from glasslet.api.field_errors import FieldPath
from glasslet.api.pod import PodSpec


def containers_with_paths(spec: PodSpec, path: FieldPath) -> Iterator[tuple[Container | EphemeralContainer, FieldPath]]:
    """Init containers, then regular ones, then ephemeral ones. `path`: that of the spec."""
    groups: tuple[tuple[str, tuple[Container | EphemeralContainer, ...]], ...] = (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    )
    for name, group in groups:
        for number, container in enumerate(group):
            yield container, path.child(name).at(number)
