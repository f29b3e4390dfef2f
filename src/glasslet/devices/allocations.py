"""Owner of the fact which container has which devices. Kept in memory; `checkpoint` is its form on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from glasslet.devices.allocation_plan import Ids


class Allocation(Struct, frozen=True, kw_only=True):
    """Devices of one resource in one container. `by_node`: ids by NUMA node; `response`: the plugin's
    ContainerAllocateResponse, as bytes: what the container gets with them."""

    by_node: Mapping[int, tuple[str, ...]]
    response: bytes = b""

    @property
    def ids(self) -> Ids:
        """All devices."""
        return frozenset(name for names in self.by_node.values() for name in names)

    def __repr__(self) -> str:
        # The response holds environment values.
        return f"Allocation({dict(self.by_node)})"


class Owner(Struct, frozen=True, order=True):
    """A container and a resource."""

    uid: str
    container: str
    resource: str


class DeviceAllocations:
    """All allocations of this node."""

    def __init__(self, known: Mapping[Owner, Allocation] | None = None) -> None:
        self._known = dict(known or {})

    def put(self, owner: Owner, allocation: Allocation) -> None:
        """Notes the owner's devices."""
        self._known[owner] = allocation

    def release(self, gone: Callable[[str], bool]) -> bool:
        """Frees the devices of all pods (by UID) for which `gone` is true; whether there were any."""
        leaving = [owner for owner in self._known if gone(owner.uid)]
        for owner in leaving:
            del self._known[owner]
        return bool(leaving)

    def pods(self) -> frozenset[str]:
        """UIDs of the pods that have devices."""
        return frozenset(owner.uid for owner in self._known)

    def of_pod(self, uid: str) -> dict[tuple[str, str], Ids]:
        """Ids by container and resource."""
        return {(o.container, o.resource): one.ids for o, one in self._known.items() if o.uid == uid}

    def of_container(self, uid: str, container: str) -> dict[str, Allocation]:
        """By resource, in order of the names."""
        found = [(o.resource, one) for o, one in self._known.items() if (o.uid, o.container) == (uid, container)]
        return dict(sorted(found, key=lambda pair: pair[0]))

    def taken(self) -> dict[str, Ids]:
        """Ids by resource."""
        taken: dict[str, Ids] = {}
        for owner, one in self._known.items():
            taken[owner.resource] = taken.get(owner.resource, frozenset()) | one.ids
        return taken

    def __iter__(self) -> Iterator[tuple[Owner, Allocation]]:
        return iter(sorted(self._known.items(), key=lambda pair: pair[0]))

    def __len__(self) -> int:
        return len(self._known)
