"""Pods that the API server wants on this node: a list and a watch on spec.nodeName.

    APISource(client=..., node_name=..., deliver=partial(desired.update_source, API), recorder=...)

Mirrors of static pods are API objects of this node too, but no pods to run: they are kept apart (`mirrors()`), and
serve as the API's side of the static pods that they show.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_mirror, stands_for
from glasslet.api.pod_ref import PodRef
from glasslet.kubeapi import paths
from glasslet.kubeapi.protocols import APIClient
from glasslet.kubeapi.reflector import ObjectChange, Reflector
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind


class APISource:
    """Owner of the local copy of the node's pods in the API. `deliver` takes all of them after each change;
    subscribers hear at once which pod an API object that came, changed or went stands for. Nothing is asked before
    `wait_for_node` returns: admission needs the node object (behaviours.md §1)."""

    def __init__(
        self,
        *,
        client: APIClient,
        node_name: str,
        deliver: Callable[[list[Pod]], None],
        recorder: Recorder,
        wait_for_node: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._deliver = deliver
        self._on_change: list[Callable[[PodUID], None]] = []
        self._recorder = recorder
        self._wait_for_node = wait_for_node
        self._changed = asyncio.Event()
        self._pods = Reflector(
            client=client,
            path=paths.PODS,
            kind=Pod,
            query={"fieldSelector": f"spec.nodeName={node_name}"},
            on_change=self._take,
            recorder=recorder,
            trim=_without_managed_fields,
        )

    @property
    def synced(self) -> asyncio.Event:
        """Set once the first list is complete."""
        return self._pods.synced

    def subscribe(self, callback: Callable[[PodUID], None]) -> None:
        """Calls back with the UID of each pod whose API object came, changed or went."""
        self._on_change.append(callback)

    def api_pod(self, ref: PodRef) -> Pod | None:
        """The API object that shows this pod: itself, or the mirror of a static one. None for another
        pod of the same name."""
        found = self._pods.get(ref.namespace, ref.name)
        return found if found is not None and stands_for(found) == ref.uid else None

    def mirrors(self) -> list[Pod] | None:
        """All mirrors of static pods, wanted or not; None before the first list."""
        if not self._pods.synced.is_set():
            return None
        return [pod for pod in self._pods.all() if is_mirror(pod)]

    async def run(self) -> None:
        """Runs until cancelled."""
        if self._wait_for_node is not None:
            with self._recorder.wait(WaitKind.API_CALL, on="the node object, before pods are listed"):
                await self._wait_for_node()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run(), name="watch of pods")
            await self._pods.synced.wait()
            while True:
                # Changes that came together are delivered together: a recreated pod never meets its predecessor.
                self._changed.clear()
                self._deliver([pod for pod in self._pods.all() if not is_mirror(pod)])
                await self._changed.wait()

    def _take(self, change: ObjectChange[Pod]) -> None:
        for pod in {stands_for(pod) for pod in (change.old, change.new) if pod is not None}:
            for callback in self._on_change:
                callback(pod)
        self._changed.set()


def _without_managed_fields(pod: Pod) -> Pod:
    """They serve the API server only, and are larger than all the rest."""
    if not pod.metadata.managed_fields:
        return pod
    return replace(pod, metadata=replace(pod.metadata, managed_fields=()))
