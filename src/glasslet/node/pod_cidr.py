"""Hands the node's pod CIDR to the runtime: some runtimes configure their network plugin with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from glasslet.api.node import Node
from glasslet.concurrency.jitter import jittered
from glasslet.runtime.errors import RuntimeCallError

logger = logging.getLogger(__name__)

_RETRY_MIN = 1.0
_RETRY_MAX = 30.0


class PodCIDRHandover:
    """Hands each new podCIDR to the runtime, as one text for all families, until the runtime takes it."""

    def __init__(self, *, update: Callable[[str], Awaitable[None]], configured: str = "") -> None:
        """`update`: CRI UpdateRuntimeConfig. `configured`: `podCIDR` of the configuration, which counts until the Node
        has one."""
        self._update = update
        self._wanted = ""
        self._applied = ""
        self._news = asyncio.Event()
        self._want(configured)

    def take(self, node: Node) -> None:
        """Takes a version of the node; one without podCIDR changes nothing."""
        self._want(",".join(node.spec.pod_cidrs) or node.spec.pod_cidr)

    def _want(self, wanted: str) -> None:
        if wanted and wanted != self._wanted:
            self._wanted = wanted
            self._news.set()

    async def run(self) -> None:
        """Hands over each new value until cancelled."""
        delay = _RETRY_MIN
        while True:
            await self._news.wait()
            wanted = self._wanted
            try:
                await self._update(wanted)
            except RuntimeCallError as error:
                logger.warning("runtime does not take the pod CIDR", extra={"cidr": wanted, "error": str(error)})
                await asyncio.sleep(jittered(delay))
                delay = min(delay * 2, _RETRY_MAX)
                continue
            logger.info("pod CIDR handed to the runtime", extra={"old": self._applied, "new": wanted})
            self._applied, delay = wanted, _RETRY_MIN
            if wanted == self._wanted:
                self._news.clear()
