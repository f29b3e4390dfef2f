"""Certificates over years, in virtual time, against an API server that signs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from glasslet.api.node import NodeAddress
from glasslet.concurrency.clock import LoopClock
from glasslet.identity.certificate import Subject, read_request
from glasslet.identity.manager import CLIENT, SERVING, CertificateManager, Purpose, one_signer
from glasslet.identity.pair_store import Pair, PairStore
from glasslet.identity.rotation import node_subject, serving_subject
from glasslet.identity.signer import CertificateSigner
from glasslet.kubeapi.errors import Forbidden, Unauthorized, Unavailable
from glasslet.record.store import Record
from tests.builders.signing import make_key
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.signing_controller import SigningController

pytestmark = pytest.mark.looptime

LIFE = timedelta(seconds=1000)


@dataclass
class Counted:
    failures: int = 0
    ages: list[float] = field(default_factory=list)

    def failed(self) -> None:
        self.failures += 1

    def replaced(self, age_seconds: float) -> None:
        self.ages.append(age_seconds)


@dataclass
class World:
    server: FakeAPIServer
    controller: SigningController
    manager: CertificateManager
    metrics: Counted
    record: Record
    store: PairStore
    new: list[Pair] = field(default_factory=list)
    addresses: list[NodeAddress] = field(default_factory=list)

    def times(self) -> list[float]:
        """When requests came."""
        return [round(at, 1) for at, _ in self.controller.seen]


@asynccontextmanager
async def managing(tmp_path: Path, purpose: Purpose = CLIENT) -> AsyncIterator[World]:
    clock, record, metrics = LoopClock(), Record(), Counted()
    server = FakeAPIServer(clock=clock)
    controller = SigningController(server, life=LIFE)
    store = PairStore(folder=str(tmp_path), prefix="kubelet-test")
    signer = CertificateSigner(client=server, recorder=record, clock=clock)
    new: list[Pair] = []
    addresses: list[NodeAddress] = []

    def subject() -> Subject | None:
        return node_subject("node-1") if purpose is CLIENT else serving_subject("node-1", addresses)

    manager = CertificateManager(
        purpose=purpose,
        store=store,
        subject=subject,
        signers=lambda _: one_signer(signer),
        make_key=make_key,
        metrics=metrics,
        clock=clock,
        on_new=new.append,
        draw=lambda: 0.5,
    )
    manager.adopt(None, renew=True)
    world = World(server, controller, manager, metrics, record, store, new, addresses)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(controller.run()), group.create_task(manager.run())]
        try:
            yield world
        finally:
            for task in tasks:
                task.cancel()


async def test_certificate_is_asked_for_renewed_and_kept(tmp_path: Path) -> None:
    # behaviours.md §28: "Renewal moment: random at 70..90 % of life from notBefore."
    async with managing(tmp_path) as world:
        await asyncio.sleep(1700)
    assert world.times() == [0.0, 800.0, 1600.0]
    current = world.store.current()
    assert current is not None
    assert [pair.certificate.not_after for pair in world.new] == sorted(p.certificate.not_after for p in world.new)
    assert current.certificate == world.new[-1].certificate
    assert world.metrics.ages == [800.0, 800.0]


async def test_client_request_asks_what_the_approver_wants(tmp_path: Path) -> None:
    # behaviours.md §28: "signer kubernetes.io/kube-apiserver-client-kubelet, CN system:node:<name>, O system:nodes,
    # usages digital signature, client auth"; "Rotation names csr-<random> via generateName. No expiry requested."
    async with managing(tmp_path) as world:
        await asyncio.sleep(1)
    spec = world.controller.request(0).spec
    assert spec.signer_name == "kubernetes.io/kube-apiserver-client-kubelet"
    assert spec.usages == ("digital signature", "client auth")
    assert spec.expiration_seconds is None
    assert read_request(spec.request).subject == node_subject("node-1")
    assert world.controller.request(0).metadata.name.startswith("csr-")


async def test_each_request_has_a_new_key(tmp_path: Path) -> None:
    async with managing(tmp_path) as world:
        await asyncio.sleep(900)
    first, second = (read_request(world.controller.request(number).spec.request) for number in (0, 1))
    assert first.public_key != second.public_key


async def test_failed_requests_come_again_later_and_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # behaviours.md §28: "Retry 2 s doubling 5 steps, then every 32 s"
    monkeypatch.setattr("glasslet.identity.manager.jittered", lambda seconds, _: seconds)
    async with managing(tmp_path) as world:
        world.server.fail_next(Unavailable, verb="POST", times=7)
        await asyncio.sleep(2 + 4 + 8 + 16 + 32 + 32 + 32 + 1)
    assert world.times() == [126.0]
    assert world.metrics.failures == 7


async def test_denied_request_is_followed_by_another(tmp_path: Path) -> None:
    async with managing(tmp_path) as world:
        world.controller.denies = True
        await asyncio.sleep(1)
        world.controller.denies = False
        await asyncio.sleep(5)
    assert len(world.controller.seen) == 2
    assert world.manager.current() is not None
    assert world.metrics.failures == 1


async def test_request_nobody_approves_is_replaced_after_15_minutes_and_a_person_is_told(tmp_path: Path) -> None:
    # behaviours.md §28: "waits 15 min per CSR"
    async with managing(tmp_path) as world:
        world.controller.approves = False
        await asyncio.sleep(800)
        name = world.controller.request(0).metadata.name
        assert any(f"kubectl certificate approve {name}" in finding for finding in world.record.findings())
        await asyncio.sleep(101 + 2.3)
        assert len(world.controller.seen) == 2
        assert world.record.findings() == []


async def test_approval_by_hand_is_noticed_at_once(tmp_path: Path) -> None:
    async with managing(tmp_path) as world:
        world.controller.approves = False
        await asyncio.sleep(500)
        world.controller.sign(world.controller.request(0).metadata.name)
        await asyncio.sleep(0.01)
        assert world.manager.current() is not None


async def test_request_survives_an_api_server_that_goes_away(tmp_path: Path) -> None:
    async with managing(tmp_path) as world:
        world.controller.delay = 60
        await asyncio.sleep(10)
        world.server.break_watches()
        world.server.fail_next(Unavailable, verb="LIST", times=20)
        await asyncio.sleep(60)
        world.controller.sign(world.controller.request(0).metadata.name)
        await asyncio.sleep(2)
        assert world.manager.current() is not None
    assert len(world.controller.seen) == 1


async def test_deleted_request_is_made_anew(tmp_path: Path) -> None:
    async with managing(tmp_path) as world:
        world.controller.approves = False
        await asyncio.sleep(1)
        world.controller.approves = True
        world.server.remove("certificatesigningrequests", "", world.controller.request(0).metadata.name)
        await asyncio.sleep(4)
        assert world.manager.current() is not None


@pytest.mark.parametrize(("error", "answers"), [(Unauthorized, True), (Forbidden, True), (Unavailable, False)])
async def test_refusal_shows_that_the_server_is_there(tmp_path: Path, error: type[Unauthorized], answers: bool) -> None:
    async with managing(tmp_path) as world:
        world.server.fail_next(error, verb="POST", times=50)
        await asyncio.sleep(5)
        assert world.manager.server_answers is answers


async def test_expired_certificate_is_none(tmp_path: Path) -> None:
    async with managing(tmp_path) as world:
        await asyncio.sleep(1)
        world.server.fail_next(Unavailable, verb="POST", times=1000)
        await asyncio.sleep(990)
        assert world.manager.current() is not None
        await asyncio.sleep(20)
        assert world.manager.current() is None
        assert world.manager.expiry() is None


def at(address: str) -> NodeAddress:
    return NodeAddress(type="InternalIP", address=address)


async def test_serving_certificate_waits_for_an_address(tmp_path: Path) -> None:
    # behaviours.md §28: "serverTLSBootstrap: signer kubernetes.io/kubelet-serving, SANs node DNS names and IPs, usages
    # digital signature, server auth"; "asked for only once an IP address is known"
    async with managing(tmp_path, SERVING) as world:
        world.addresses.append(NodeAddress(type="Hostname", address="node-1"))
        await asyncio.sleep(60)
        assert world.controller.seen == []
        world.addresses.append(at("10.0.0.1"))
        await asyncio.sleep(1.1)
        assert world.manager.current() is not None
    spec = world.controller.request(0).spec
    assert (spec.signer_name, spec.usages) == ("kubernetes.io/kubelet-serving", ("digital signature", "server auth"))
    assert world.new[0].certificate.subject.ip_addresses == ("10.0.0.1",)
    assert world.new[0].certificate.subject.dns_names == ("node-1",)


async def test_serving_certificate_follows_the_addresses(tmp_path: Path) -> None:
    # behaviours.md §28: "re-issued when addresses change"
    async with managing(tmp_path, SERVING) as world:
        world.addresses.append(at("10.0.0.1"))
        await asyncio.sleep(100)
        world.addresses.append(at("10.0.0.2"))
        await asyncio.sleep(11)
        del world.addresses[0]
        await asyncio.sleep(100)
    assert [pair.certificate.subject.ip_addresses for pair in world.new] == [("10.0.0.1",), ("10.0.0.1", "10.0.0.2")]


async def test_request_for_old_addresses_is_given_up(tmp_path: Path) -> None:
    async with managing(tmp_path, SERVING) as world:
        world.controller.approves = False
        world.addresses.append(at("10.0.0.1"))
        await asyncio.sleep(30)
        world.addresses[0] = at("10.0.0.2")
        world.controller.approves = True
        await asyncio.sleep(15)
    assert [pair.certificate.subject.ip_addresses for pair in world.new] == [("10.0.0.2",)]


async def test_stop_while_waiting_for_approval_is_clean(tmp_path: Path) -> None:
    async with managing(tmp_path) as world:
        world.controller.approves = False
        await asyncio.sleep(5)
    assert world.manager.current() is None
