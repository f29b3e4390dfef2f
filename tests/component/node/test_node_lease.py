"""The node's heartbeat against an API server that can be down."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from glasslet.api.lease import Lease
from glasslet.api.meta import OwnerReference
from glasslet.concurrency.clock import LoopClock
from glasslet.kubeapi.errors import AlreadyExists, Conflict, NotFound, Unavailable
from glasslet.node.lease import NodeLease

pytestmark = pytest.mark.looptime


class Server:
    """Holds one lease; remembers when it was written."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.version = 0
        self.writes: list[float] = []
        self.down_until = 0.0

    def _answer(self) -> None:
        if asyncio.get_running_loop().time() < self.down_until:
            raise Unavailable("PUT", "down")

    def _store(self, lease: Lease) -> Lease:
        self.version += 1
        meta = msgspec.structs.replace(lease.metadata, resource_version=str(self.version))
        self.lease = msgspec.structs.replace(lease, metadata=meta)
        self.writes.append(asyncio.get_running_loop().time())
        return self.lease

    async def get(self, path: str, kind: Any, **_: Any) -> Lease:
        self._answer()
        if self.lease is None:
            raise NotFound("GET", "no lease")
        return self.lease

    async def create(self, path: str, body: Lease, kind: Any, **_: Any) -> Lease:
        self._answer()
        if self.lease is not None:
            raise AlreadyExists("POST", "there")
        return self._store(body)

    async def update(self, path: str, body: Lease, kind: Any, **_: Any) -> Lease:
        self._answer()
        if self.lease is None:
            raise NotFound("PUT", "no lease")
        if body.metadata.resource_version != self.lease.metadata.resource_version:
            raise Conflict("PUT", "changed")
        return self._store(body)


def lease_of(server: Server, owner: OwnerReference | None = None) -> NodeLease:
    return NodeLease(
        client=server,  # type: ignore[arg-type]
        node="n1",
        duration_seconds=40,
        clock=LoopClock(),
        owner=lambda: owner,
    )


async def run(lease: NodeLease, seconds: float) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(lease.run())
        await asyncio.sleep(seconds)
        task.cancel()


async def test_lease_is_renewed_every_quarter_of_its_duration() -> None:
    # behaviours §12: "renewed every quarter of the duration (10 s) with 4 % jitter"
    server = Server()
    await run(lease_of(server), 100)
    gaps = [b - a for a, b in zip(server.writes, server.writes[1:], strict=False)]
    assert gaps
    assert all(10.0 <= gap <= 10.4 for gap in gaps)


async def test_lease_names_holder_duration_and_owner() -> None:
    # behaviours §12: "Lease: namespace kube-node-lease, name = node, holderIdentity = node, ownerReference to the Node"
    server = Server()
    await run(lease_of(server, OwnerReference(kind="Node", name="n1", uid="x")), 1)
    assert server.lease is not None
    assert (server.lease.spec.holder_identity, server.lease.spec.lease_duration_seconds) == ("n1", 40)
    assert server.lease.metadata.owner_references[0].uid == "x"


async def test_lease_changed_by_others_is_read_again_and_renewed() -> None:
    # behaviours §12: "renewal 5 tries, a conflict re-reads"
    server = Server()
    lease = lease_of(server)
    await lease.renew()
    assert server.lease is not None
    server._store(server.lease)
    await lease.renew()
    assert len(server.writes) == 3


async def test_deleted_lease_is_made_anew() -> None:
    server = Server()
    lease = lease_of(server)
    await lease.renew()
    server.lease = None
    await lease.renew()
    assert server.lease is not None


async def test_heartbeat_comes_back_after_an_outage() -> None:
    server = Server()
    server.down_until = 120.0
    await run(lease_of(server), 140)
    assert server.writes
    assert server.writes[0] < 130
