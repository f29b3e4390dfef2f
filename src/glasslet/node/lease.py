"""The node's heartbeat: a Lease renewed every quarter of its duration (KEP-589).

The lease is what keeps a node Ready in the cluster while nothing about it changes: its renewal waits for nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from glasslet.api.lease import Lease
from glasslet.api.meta import ObjectMeta, OwnerReference
from glasslet.api.times import rfc3339_micro
from glasslet.concurrency.clock import Clock
from glasslet.concurrency.jitter import jittered
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import AlreadyExists, APIError, Conflict, NotDecoded, NotFound
from glasslet.kubeapi.protocols import APIClient
from glasslet.node.request_trouble import RequestTrouble

logger = logging.getLogger(__name__)

_RENEW_SHARE = 0.25
_JITTER = 0.04
_TRIES = 5
_CREATE_MIN = 0.2
_CREATE_MAX = 7.0


async def _no_reconnect() -> None:
    """Nothing to reconnect."""


class NodeLease:
    """Keeps the lease of one node current until cancelled.

    `owner` gives the Node's reference once it is registered; `on_failure` runs when all tries of a renewal failed, and
    closes connections that may be dead.
    """

    def __init__(
        self,
        *,
        client: APIClient,
        node: str,
        duration_seconds: int,
        clock: Clock,
        owner: Callable[[], OwnerReference | None],
        on_failure: Callable[[], Awaitable[None]] = _no_reconnect,
    ) -> None:
        self._client = client
        self._node = node
        self._duration = duration_seconds
        self._clock = clock
        self._owner = owner
        self._on_failure = on_failure
        self._lease: Lease | None = None
        self.renewed_at: float | None = None
        """Monotonic seconds of the last success."""
        self.trouble = RequestTrouble(clock)

    async def run(self) -> None:
        """Creates the lease if it does not exist, then renews it."""
        while True:
            await self.renew()
            await asyncio.sleep(jittered(self._duration * _RENEW_SHARE, _JITTER))

    async def renew(self) -> None:
        """One heartbeat: from the last known lease, else from what the server has, else a new one."""
        if self._lease is not None and await self._update(self._lease):
            return
        lease = await self._ensure()
        if lease is not None and not await self._update(lease):
            logger.error("lease not renewed", extra={"node": self._node})
            await self._on_failure()

    async def _update(self, lease: Lease) -> bool:
        for _ in range(_TRIES):
            wanted = self._current(lease)
            try:
                self._lease = await self._client.update(
                    paths.lease(self._node), wanted, Lease, timeout=self._patience()
                )
            except Conflict:
                # Another client wrote it: read it and try again.
                return False
            except NotFound:
                self._lease = None
                return False
            except NotDecoded as error:
                # Renewed. The next renewal replaces what cannot be decoded.
                self._lease = Lease(metadata=error.item.metadata)
            except APIError as error:
                self.trouble.is_(error)
                logger.warning("lease renewal failed", extra={"error": str(error)})
                continue
            self._renewed()
            return True
        return False

    async def _ensure(self) -> Lease | None:
        """The lease as the server has it, created if missing; None if this call already renewed it."""
        delay = _CREATE_MIN
        while True:
            try:
                return await self._client.get(paths.lease(self._node), Lease, timeout=self._patience())
            except NotDecoded as error:
                return Lease(metadata=error.item.metadata)
            except NotFound:
                # Created below.
                pass
            except APIError as error:
                self.trouble.is_(error)
                logger.warning("lease cannot be read", extra={"error": str(error)})
            try:
                fresh = self._current(Lease(metadata=ObjectMeta(name=self._node, namespace="kube-node-lease")))
                self._lease = await self._client.create(paths.leases(), fresh, Lease, timeout=self._patience())
                self._renewed()
                return None
            except AlreadyExists:
                # Another client created it in between: read it.
                continue
            except APIError as error:
                self.trouble.is_(error)
                logger.warning("lease cannot be created", extra={"error": str(error), "retry_seconds": delay})
            await asyncio.sleep(delay)
            delay = min(delay * 2, _CREATE_MAX)

    def _renewed(self) -> None:
        self.renewed_at = self._clock.monotonic()
        self.trouble.over()

    def _current(self, lease: Lease) -> Lease:
        owner = self._owner()
        meta = lease.metadata
        if owner is not None and owner.uid not in [one.uid for one in meta.owner_references]:
            # Also for a lease of a Node that was deleted: it would be collected with its former owner.
            meta = msgspec.structs.replace(meta, owner_references=(owner,))
        spec = msgspec.structs.replace(
            lease.spec,
            holder_identity=self._node,
            lease_duration_seconds=self._duration,
            renew_time=rfc3339_micro(self._clock.now()),
        )
        return msgspec.structs.replace(lease, metadata=meta, spec=spec)

    def _patience(self) -> float:
        """A request that takes longer than the renew period is worth less than a fresh one."""
        return max(1.0, self._duration * _RENEW_SHARE)
