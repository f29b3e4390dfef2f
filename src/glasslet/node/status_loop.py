"""Keeps the node's status at the API server current: computed often, sent after a change and at intervals.

wake (readiness changed) ──┐
every update interval ─────┴─▶ compose ──▶ changed, or report due? ──▶ patch ──▶ events, local copy
                                  ▲                                     │
                                  └──── read it from the server ◀───────┘ failed: 5 tries in a round
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from msgspec import Struct

from glasslet.api.node import Node
from glasslet.concurrency.jitter import jittered
from glasslet.kubeapi import paths
from glasslet.kubeapi.decoding import updated
from glasslet.kubeapi.errors import APIError, NotDecoded, NotFound
from glasslet.kubeapi.protocols import APIClient
from glasslet.node.known_node import KnownNode
from glasslet.node.patch import node_patch
from glasslet.node.reporting import NodeReporting
from glasslet.node.request_trouble import RequestTrouble
from glasslet.node.settings import NodeSettings
from glasslet.node.status.compose import Composed, has_changed, is_ready, ready_condition

logger = logging.getLogger(__name__)

_POLL = 0.1
"""node.fast_status_poll"""
_GRACE = 120.0
"""node.fast_status_grace"""
_TRIES = 5
_JITTER = 0.04
_AFTER_FAILURE = 5.0
"""Seconds at most until the next round after one whose tries all failed: an API server that is back gets it soon."""


class ReportSchedule(Struct, frozen=True, kw_only=True):
    """Seconds of monotonic time; `reported_at` is None before the first report."""

    interval: float
    reported_at: float | None = None
    shift: float = 0.0

    def is_due(self, now: float) -> bool:
        """Whether an unchanged status is due."""
        return self.reported_at is None or now - self.reported_at >= self.interval + self.shift

    def reported(self, now: float, *, changed: bool, draw: Callable[[], float] = random.random) -> ReportSchedule:
        """The schedule after a report. `draw` gives numbers in [0, 1)."""
        shift = self.interval * (draw() - 0.5) if changed or self.reported_at is None else 0.0
        return ReportSchedule(interval=self.interval, reported_at=now, shift=shift)


async def no_reconnect() -> None:
    """Nothing to reconnect."""


class StatusLoop:
    """One per node. `compose` gives the node as it should be; `client` is one without a rate limit, and `reconnect`
    drops its connections: after repeated failures they may be dead. `on_accepted` is called with each node that the API
    server answered a report with."""

    def __init__(
        self,
        *,
        client: APIClient,
        settings: NodeSettings,
        known: KnownNode,
        compose: Callable[[Node], Composed],
        report: NodeReporting,
        reconnect: Callable[[], Awaitable[None]] = no_reconnect,
        on_accepted: Callable[[Node], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._known = known
        self._compose = compose
        self._reporting = report
        self._reconnect = reconnect
        self._schedule = ReportSchedule(interval=settings.report_seconds)
        self._woken = asyncio.Event()
        self._on_accepted = on_accepted
        self.trouble = RequestTrouble(report.clock)

    def wake(self) -> None:
        """Computes the status now: a part of it may have changed."""
        self._woken.set()

    async def run(self) -> None:
        """Runs rounds while there is a node, until cancelled."""
        while True:
            await self._known.wait_appeared()
            self._woken.clear()
            good = await self.round()
            pause = self._settings.update_seconds
            await self._sleep(jittered(pause if good else min(pause, _AFTER_FAILURE), _JITTER))

    async def round(self) -> bool:
        """Computes the status and reports it if it changed or is due. False if the API server did not accept it."""
        node = self._known.node
        for attempt in range(_TRIES):
            try:
                # A local copy may be behind; the second try and later ones read the server.
                if node is None:
                    node = await self._client.get(self._path, Node, timeout=self._settings.status_timeout)
                await self._report(node)
                self.trouble.over()
                return True
            except NotFound as error:
                if node is not None:
                    self._known.forget(node.metadata.uid)
                logger.warning("node does not exist", extra={"error": str(error)})
                return False
            except APIError as error:
                self.trouble.is_(error)
                logger.warning("node status not reported", extra={"error": str(error), "try": attempt + 1})
                node = None
                if attempt:
                    await self._reconnect()
        logger.error("node status not reported, all tries failed", extra={"tries": _TRIES})
        return False

    async def _report(self, node: Node) -> None:
        composed = self._compose(node)
        now = self._reporting.clock.monotonic()
        changed = has_changed(node, composed.node)
        if not changed and not self._schedule.is_due(now):
            return
        patch = node_patch(node, composed.node)
        try:
            accepted = await self._client.patch(
                paths.node_status(self._settings.name),
                patch,
                Node,
                urgent=True,
                timeout=self._settings.status_timeout,
            )
        except NotDecoded as error:
            # The status was taken. The rest of the node is as it was last decoded.
            accepted = updated(composed.node, error.item)
        self._schedule = self._schedule.reported(now, changed=changed)
        self._tell(node, composed)
        self._known.take(accepted)
        self._on_accepted(accepted)

    def _tell(self, before: Node, composed: Composed) -> None:
        for event in composed.events:
            self._reporting.send(event)
        old, new = ready_condition(before), ready_condition(composed.node)
        if new is not None and (old is None or old.status != new.status):
            self._reporting.recorder.observed(
                "node Ready", "none" if old is None else old.status, f"{new.status}: {new.message}"
            )
            logger.info("node readiness changed", extra={"ready": is_ready(composed.node), "message_": new.message})

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            # The period is over.
            pass

    @property
    def _path(self) -> str:
        return paths.node(self._settings.name)


async def hasten_readiness(
    *, poll: Callable[[], Awaitable[None]], is_ready: Callable[[], bool], ready: Callable[[], None]
) -> None:
    """Polls until `is_ready`, then calls `ready` once. Gives up after two minutes: the regular rounds go on."""
    try:
        async with asyncio.timeout(_GRACE):
            while not is_ready():
                await asyncio.sleep(_POLL)
                await poll()
    except TimeoutError:
        logger.error("node not ready in time after start", extra={"seconds": _GRACE})
        return
    ready()
