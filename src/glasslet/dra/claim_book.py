"""Which claims are, or may be, prepared on this node, for which pods: the only writer of this fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from glasslet.dra.driver_calls import ClaimId, PreparedDevice

ClaimKey = tuple[str, str]
"""Namespace and name."""


class ClaimEntry(Struct, frozen=True, kw_only=True):
    """One claim, from before its first call of a driver until after the last one. `pods`: UIDs of those that use it;
    `devices` by driver, () before it is prepared. `prepared`: all drivers said so to this agent; an agent that begins
    asks again."""

    id: ClaimId
    pods: frozenset[str]
    devices: Mapping[str, tuple[PreparedDevice, ...]]
    prepared: bool = False


class ClaimBook:
    """The claims by namespace and name."""

    def __init__(self) -> None:
        self._entries: dict[ClaimKey, ClaimEntry] = {}

    def load(self, entries: Iterable[ClaimEntry]) -> None:
        """What an earlier agent wrote down."""
        self._entries = {key_of(entry.id): entry for entry in entries}

    def get(self, key: ClaimKey) -> ClaimEntry | None:
        """One claim."""
        return self._entries.get(key)

    def all(self) -> tuple[ClaimEntry, ...]:
        """By namespace and name."""
        return tuple(self._entries[key] for key in sorted(self._entries))

    def of_pod(self, uid: str) -> tuple[ClaimEntry, ...]:
        """The claims that the pod uses."""
        return tuple(entry for entry in self.all() if uid in entry.pods)

    def pods(self) -> frozenset[str]:
        """The UIDs of all pods that use a claim."""
        return frozenset[str]().union(*(entry.pods for entry in self._entries.values()))

    def use(self, claim: ClaimId, drivers: Iterable[str], pod: str) -> ClaimEntry:
        """The pod uses the claim from now on."""
        known = self._entries.get(key_of(claim))
        if known is None or known.id != claim:
            entry = ClaimEntry(id=claim, pods=frozenset((pod,)), devices=dict.fromkeys(drivers, ()))
        else:
            more = {driver: () for driver in drivers if driver not in known.devices}
            entry = replace(
                known,
                pods=known.pods | {pod},
                devices={**known.devices, **more},
                prepared=known.prepared and not more,
            )
        self._entries[key_of(claim)] = entry
        return entry

    def prepared_by(self, driver: str, devices: Mapping[str, tuple[PreparedDevice, ...]]) -> None:
        """A driver's newest answer, by the UIDs of claims, in place of earlier ones."""
        for key, entry in self._entries.items():
            if entry.id.uid in devices:
                self._entries[key] = replace(entry, devices={**entry.devices, driver: devices[entry.id.uid]})

    def all_prepared(self, keys: Iterable[ClaimKey]) -> None:
        """All drivers of these claims have prepared them."""
        for key in keys:
            self._entries[key] = replace(self._entries[key], prepared=True)

    def leave(self, pod: str, keys: Iterable[ClaimKey]) -> None:
        """The pod does not use these claims any more. One that no pod uses is forgotten."""
        for key in keys:
            entry = self._entries[key]
            if left := entry.pods - {pod}:
                self._entries[key] = replace(entry, pods=left)
            else:
                del self._entries[key]

    def in_use(self) -> tuple[int, Mapping[str, int]]:
        """How many claims are prepared, and how many of them each driver has a part in."""
        prepared = [entry for entry in self._entries.values() if entry.prepared]
        counts: dict[str, int] = {}
        for entry in prepared:
            for driver in entry.devices:
                counts[driver] = counts.get(driver, 0) + 1
        return len(prepared), counts


def key_of(claim: ClaimId) -> ClaimKey:
    """The claim's place in the book."""
    return claim.namespace, claim.name


def by_driver(entries: Sequence[ClaimEntry]) -> Mapping[str, tuple[ClaimId, ...]]:
    """The claims that each driver has to do with."""
    drivers = sorted({driver for entry in entries for driver in entry.devices})
    return {driver: tuple(entry.id for entry in entries if driver in entry.devices) for driver in drivers}
