"""The base of every API type, and the identities that travel between components."""

from __future__ import annotations

from typing import NewType

from msgspec import Struct

PodUID = NewType("PodUID", str)
"""`metadata.uid` of a pod; static pods get theirs from a hash of the manifest."""
ContainerID = NewType("ContainerID", str)
"""The runtime's id of a container, without the `<runtime>://` prefix that the API shows."""
SandboxID = NewType("SandboxID", str)
"""The runtime's id of a pod sandbox."""


class Object(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A value of the Kubernetes API: frozen, decoded once at the edge."""
