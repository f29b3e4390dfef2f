"""Registers the node: creates the object, or takes over an existing one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from glasslet.api.node import Node
from glasslet.concurrency.clock import Clock
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import AlreadyExists, APIError, Forbidden, Throttled
from glasslet.kubeapi.protocols import APIClient
from glasslet.node.inputs import NodeEvent
from glasslet.node.patch import node_patch
from glasslet.node.reconcile import reconcile
from glasslet.node.request_trouble import RequestTrouble
from glasslet.node.settings import NodeSettings
from glasslet.node.status.compose import Composed
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

_RETRY_MIN = 0.1
_RETRY_MAX = 7.0


class RegistrationMetrics(Protocol):
    """Counts the times of a node's start (`kubelet_node_startup_*`)."""

    def registering(self) -> None:
        """An attempt to register begins."""

    def created(self) -> None:
        """This process has created the Node."""


class Registration:
    """CREATE first; if the node exists, or may exist, GET it and patch the fields that the agent owns.

    `initial` composes the node as it would be created now. `reset_extended`: whether nothing is known of devices here.
    """

    def __init__(
        self,
        *,
        client: APIClient,
        settings: NodeSettings,
        initial: Callable[[], Composed],
        recorder: Recorder,
        clock: Clock,
        reset_extended: Callable[[], bool] = lambda: False,
        metrics: RegistrationMetrics | None = None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._initial = initial
        self._recorder = recorder
        self._reset_extended = reset_extended
        self._metrics = metrics
        self._finding = StandingFinding(recorder)
        self.trouble = RequestTrouble(clock)

    async def register(self) -> tuple[Node, tuple[NodeEvent, ...]]:
        """Tries until it succeeds. Returns the node as it is now, and the events of its first report."""
        delay = _RETRY_MIN
        while True:
            if self._metrics is not None:
                self._metrics.registering()
            composed = self._initial()
            try:
                node = await self._try(composed.node)
            except APIError as error:
                problem = error
                self.trouble.is_(error)
            else:
                self.trouble.over()
                self._finding.over()
                return node, composed.events
            self._finding.is_(f"node not registered: {problem}")
            if isinstance(problem, Throttled):
                delay = max(delay, problem.retry_after)
            with self._recorder.wait(WaitKind.BACK_OFF, on="registration of the node"):
                await asyncio.sleep(delay)
            delay = min(delay * 2, _RETRY_MAX)

    async def _try(self, initial: Node) -> Node:
        name = self._settings.name
        try:
            node = await self._client.create(paths.NODES, initial, Node)
        except AlreadyExists:
            logger.info("node exists", extra={"node": name})
        except Forbidden:
            # This node may lack the right to create nodes; the object may exist nevertheless.
            if self._settings.get_on_exists_only:
                raise
        else:
            logger.info("node created", extra={"node": name, "uid": node.metadata.uid})
            if self._metrics is not None:
                self._metrics.created()
            return node
        existing = await self._client.get(paths.node(name), Node)
        wanted = reconcile(existing, initial, reset_extended=self._reset_extended())
        patch = node_patch(existing, wanted)
        if not patch:
            return existing
        self._recorder.decided("existing node is updated", fields=", ".join(_fields(patch)))
        return await self._client.patch(paths.node_status(name), patch, Node)


def _fields(patch: dict[str, dict[str, object]]) -> list[str]:
    return [f"{part}.{name}" for part, fields in patch.items() for name in fields]
