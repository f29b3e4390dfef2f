"""The Secrets and ConfigMaps of the pods on this node, kept by one of three strategies.

    PodObjects(secrets=..., config_maps=...)        # or build_pod_objects(strategy, client=..., ...)

`ConfigMapAndSecretChangeDetectionStrategy` of the configuration chooses: Watch (a change is known at once), Cache (at
the end of a time to live), Get (at every look at the pod).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct, field

from glasslet.api.configdata import ConfigMap, Secret
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import Clock
from glasslet.kubeapi.objects.cached import DEFAULT_TTL, CachedObjects, DirectObjects
from glasslet.kubeapi.objects.kinds import CONFIG_MAPS, SECRETS, Key, ObjectKind, ObjectStore, T
from glasslet.kubeapi.objects.polled import RATE
from glasslet.kubeapi.objects.references import config_map_names, secret_names
from glasslet.kubeapi.objects.watch_places import WatchPlaces
from glasslet.kubeapi.objects.watched import WatchedObjects, idle_limit
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.recorder import Recorder


class PodObjects:
    """Knows which pod needs which object, and returns the objects."""

    def __init__(self, *, secrets: ObjectStore[Secret], config_maps: ObjectStore[ConfigMap]) -> None:
        self._secrets = secrets
        self._config_maps = config_maps
        self._held: dict[PodUID, tuple[frozenset[Key], frozenset[Key]]] = {}

    def register(self, pod: Pod) -> None:
        """Holds the objects that the pod names now, and releases those that only an older version named."""
        uid, namespace = PodUID(pod.metadata.uid), pod.metadata.namespace
        secrets = frozenset((namespace, name) for name in secret_names(pod))
        config_maps = frozenset((namespace, name) for name in config_map_names(pod))
        before = self._held.get(uid, (frozenset(), frozenset()))
        self._held[uid] = (secrets, config_maps)
        _exchange(self._secrets, uid, before[0], secrets)
        _exchange(self._config_maps, uid, before[1], config_maps)

    def forget(self, uid: PodUID) -> None:
        """Releases all objects of the pod, which has ended. Unknown pods are fine."""
        secrets, config_maps = self._held.pop(uid, (frozenset(), frozenset()))
        _exchange(self._secrets, uid, secrets, frozenset())
        _exchange(self._config_maps, uid, config_maps, frozenset())

    async def secret(self, namespace: str, name: str) -> Secret:
        """A Secret that a registered pod names. Raises APIError."""
        return await self._secrets.get((namespace, name))

    async def config_map(self, namespace: str, name: str) -> ConfigMap:
        """A ConfigMap that a registered pod names. Raises APIError."""
        return await self._config_maps.get((namespace, name))

    async def run(self) -> None:
        """Keeps the objects current until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._secrets.run(), name="secrets of pods")
            group.create_task(self._config_maps.run(), name="config maps of pods")
            await asyncio.get_running_loop().create_future()


class Detection(Struct, frozen=True, kw_only=True):
    """How changes are noticed. `ttl` in seconds, for strategy Cache; `on_change` is called in strategy Watch, where the
    objects without a watch are read `poll_rate` times a second at most."""

    strategy: str
    sync_frequency: float
    on_change: Callable[[PodUID], None]
    ttl: Callable[[], float] = lambda: DEFAULT_TTL
    places: WatchPlaces = field(default_factory=WatchPlaces)
    poll_rate: float = RATE


def build_pod_objects(detection: Detection, *, client: APIClient, recorder: Recorder, clock: Clock) -> PodObjects:
    """The objects of pods by the configured strategy."""

    def store(kind: ObjectKind[T]) -> ObjectStore[T]:
        match detection.strategy:
            case "Get":
                return DirectObjects(kind=kind, client=client)
            case "Cache":
                return CachedObjects(kind=kind, client=client, clock=clock, recorder=recorder, ttl=detection.ttl)
        return WatchedObjects(
            kind=kind,
            client=client,
            on_change=detection.on_change,
            recorder=recorder,
            clock=clock,
            idle_seconds=idle_limit(detection.sync_frequency),
            places=detection.places,
            poll_rate=detection.poll_rate,
        )

    return PodObjects(secrets=store(SECRETS), config_maps=store(CONFIG_MAPS))


def _exchange(store: ObjectStore[T], uid: PodUID, old: frozenset[Key], new: frozenset[Key]) -> None:
    # New names are held before old ones are released: a shared watch must not end in between.
    for key in sorted(new - old):
        store.hold(key, uid)
    for key in sorted(old - new):
        store.release(key, uid)
