"""Which credentials count at the start, what happens without any, and when an agent gives up; in virtual time."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from glasslet.concurrency.clock import LoopClock
from glasslet.identity.bootstrap import BootstrapFailed
from glasslet.identity.certificate import read_certificates
from glasslet.identity.client_identity import ClientCertificateLost, ClientIdentity, IdentitySettings
from glasslet.identity.keys import KeyOrder
from glasslet.identity.manager import NO_METRICS
from glasslet.identity.rotation import node_subject
from glasslet.kubeapi.errors import APIError, Forbidden, Unauthorized, Unavailable
from glasslet.kubeapi.kubeconfig import Kubeconfig, KubeconfigError, load_kubeconfig
from glasslet.record.store import Record
from tests.builders.signing import SigningAuthority, make_key
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.signing_controller import SigningController

pytestmark = pytest.mark.looptime

TOKEN = "abcdef.0123456789abcdef"


class Server(FakeAPIServer):
    """One that clients connect to and leave."""

    def __init__(self) -> None:
        super().__init__(clock=LoopClock())
        self.connected: list[Kubeconfig] = []
        self.open = 0

    def connect(self, config: Kubeconfig) -> Server:
        self.connected.append(config)
        self.open += 1
        return self

    async def close(self) -> None:
        self.open -= 1


@dataclass
class World:
    folder: Path
    server: Server = field(default_factory=Server)
    record: Record = field(default_factory=Record)
    authority: SigningAuthority = field(default_factory=SigningAuthority)

    def __post_init__(self) -> None:
        self.controller = SigningController(self.server, life=timedelta(seconds=1000))
        self.pki = self.folder / "pki"
        self.kubeconfig = self.folder / "kubelet.conf"
        self.link = self.pki / "kubelet-client-current.pem"

    def identity(self, *, rotate: bool = True, bootstrap: bool = True) -> ClientIdentity:
        path = self.folder / "bootstrap.conf"
        self.write(path, {"token": TOKEN})
        settings = IdentitySettings(
            node="node-1",
            kubeconfig=str(self.kubeconfig),
            bootstrap_kubeconfig=str(path) if bootstrap else "",
            cert_dir=str(self.pki),
            rotate=rotate,
        )
        return ClientIdentity(
            settings=settings,
            connect=self.server.connect,
            metrics=NO_METRICS,
            recorder=self.record,
            clock=self.server.clock,
            make_key=make_key,
        )

    def write(self, path: Path, user: dict[str, str]) -> None:
        path.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}],
                    "users": [{"name": "u", "user": user}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )

    def pair(self, begin: float, end: float) -> tuple[bytes, bytes]:
        """A pair valid from `begin` to `end`, in seconds from now."""
        now = self.server.clock.now()
        return self.authority.pair(now + timedelta(seconds=begin), now + timedelta(seconds=end))

    def give_kubeconfig(self, begin: float, end: float) -> None:
        """A kubeconfig with a certificate inside."""
        certificate, key = self.pair(begin, end)
        data = {"client-certificate-data": certificate, "client-key-data": key}
        self.write(self.kubeconfig, {name: base64.b64encode(value).decode() for name, value in data.items()})

    def requests(self) -> list[str]:
        """Names of signing requests."""
        return [request.metadata.name for _, request in self.controller.seen]


@asynccontextmanager
async def running(*bodies: Any) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(body) for body in bodies]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    async with running(made.controller.run()):
        yield made


async def test_bootstrap_with_rotation_goes_on_in_the_background(world: World) -> None:
    identity = world.identity()
    config = identity.prepare()
    assert load_kubeconfig(str(world.kubeconfig)).certificate_file == str(world.link)
    assert (config.token, config.pair_file) == ("", str(world.link))
    await identity.obtain()
    assert not world.link.exists()
    async with running(identity.run()):
        await asyncio.sleep(1)
    assert world.link.exists()
    assert world.server.connected[0].token == TOKEN
    assert world.server.open == 0


async def test_renewal_uses_the_certificate_there_is(world: World) -> None:
    identity = world.identity()
    identity.prepare()
    async with running(identity.run()):
        await asyncio.sleep(950)
    assert [config.token for config in world.server.connected] == [TOKEN, ""]
    assert world.server.connected[1].pair_file == str(world.link)


async def test_expired_certificate_falls_back_to_bootstrap_credentials(world: World) -> None:
    world.give_kubeconfig(-2000, -1000)
    identity = world.identity()
    identity.prepare()
    async with running(identity.run()):
        await asyncio.sleep(1)
    assert world.server.connected[0].token == TOKEN
    assert load_kubeconfig(str(world.kubeconfig)).certificate_file == str(world.link)
    assert identity.expiry() is not None


async def test_valid_kubeconfig_makes_bootstrap_credentials_useless(world: World) -> None:
    world.give_kubeconfig(-10, 1000)
    before = world.kubeconfig.read_bytes()
    identity = world.identity(rotate=False)
    config = identity.prepare()
    await identity.obtain()
    assert (config.origin, world.server.connected) == (str(world.kubeconfig), [])
    assert world.kubeconfig.read_bytes() == before


async def test_bootstrap_without_rotation_comes_first(world: World) -> None:
    # behaviours.md §28: "Bootstrap: no usable --kubeconfig and --bootstrap-kubeconfig given ... writes the pair file
    # and its link, and the kubeconfig pointing to the link."
    world.controller.delay = 40
    identity = world.identity(rotate=False)
    config = identity.prepare()
    assert not world.kubeconfig.exists()
    await identity.obtain()
    assert asyncio.get_running_loop().time() >= 40
    assert world.requests()[0].startswith("node-csr-")
    assert load_kubeconfig(str(world.kubeconfig)) == config
    assert read_certificates(world.link.read_bytes())[0].subject.common_name == "system:node:node-1"
    assert not (world.pki / "kubelet-client.key.tmp").exists()


async def test_restart_goes_on_waiting_for_the_same_request(world: World) -> None:
    # behaviours.md §28: "key kubelet-client.key.tmp is made"
    world.controller.approves = False
    first = world.identity(rotate=False)
    first.prepare()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await first.obtain()
    assert (world.pki / "kubelet-client.key.tmp").stat().st_mode & 0o777 == 0o600
    world.controller.sign(world.requests()[0])
    second = world.identity(rotate=False)
    second.prepare()
    await second.obtain()
    assert len(world.requests()) == 1
    assert world.link.exists()


async def test_request_of_another_key_is_not_taken_up(world: World) -> None:
    world.controller.approves = False
    identity = world.identity(rotate=False)
    identity.prepare()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await identity.obtain()
    name = world.requests()[0]
    _, other = world.pair(0, 100)
    spec = {"spec": {"request": base64.b64encode(await make_key_request(other)).decode()}}
    world.server.change("certificatesigningrequests", "", name, spec)
    again = world.identity(rotate=False)
    again.prepare()
    with pytest.raises(BootstrapFailed, match="for another key"):
        await again.obtain()


async def make_key_request(key: bytes) -> bytes:
    return (await make_key(KeyOrder(subject=node_subject("node-1"), key=key))).request


async def test_denied_bootstrap_ends_the_start_with_the_reason(world: World) -> None:
    world.controller.denies = True
    identity = world.identity(rotate=False)
    identity.prepare()
    with pytest.raises(BootstrapFailed, match="denied: Test, as the test says"):
        await identity.obtain()
    assert not world.kubeconfig.exists()


async def test_bootstrap_gives_up_after_an_hour_without_approval(world: World) -> None:
    # behaviours.md §28: "waits for approval up to 1 h"
    world.controller.approves = False
    identity = world.identity(rotate=False)
    identity.prepare()
    with pytest.raises(BootstrapFailed, match="3600 s"):
        await identity.obtain()


async def test_bootstrap_waits_a_minute_for_a_server_that_starts(world: World) -> None:
    # behaviours.md §28: "waits up to 1 min for the server"
    world.server.fail_next(Unavailable, verb="GET", path="/version", times=10)
    world.server.answer("GET", "^/version$", lambda path, body: {"major": "1"})
    identity = world.identity(rotate=False)
    identity.prepare()
    await identity.obtain()
    assert 20 <= asyncio.get_running_loop().time() <= 25


async def test_bootstrap_with_a_wrong_token_says_so(world: World) -> None:
    world.server.fail_next(Unauthorized, times=5, message="invalid bearer token")
    identity = world.identity(rotate=False)
    identity.prepare()
    with pytest.raises(APIError, match="invalid bearer token"):
        await identity.obtain()


async def test_kubeconfig_of_an_administrator_is_rotated_out_at_once(world: World) -> None:
    world.give_kubeconfig(-10, 1_000_000)
    identity = world.identity(bootstrap=False)
    config = identity.prepare()
    assert read_certificates(world.link.read_bytes())[0].not_after > world.server.clock.now() + timedelta(days=5)
    async with running(identity.run()):
        await asyncio.sleep(1)
    assert len(world.requests()) == 1
    assert read_certificates(Path(config.pair_file).read_bytes())[0].not_after < (
        world.server.clock.now() + timedelta(days=1)
    )


async def test_certificate_files_of_the_kubeconfig_count_until_they_are_renewed(world: World) -> None:
    now = world.server.clock.now()
    certificate, key = world.authority.write_pair(world.folder, now, now + timedelta(seconds=1000))
    world.write(world.kubeconfig, {"client-certificate": certificate, "client-key": key})
    identity = world.identity(bootstrap=False)
    config = identity.prepare()
    async with running(identity.run()):
        await asyncio.sleep(600)
        assert not os.path.exists(config.pair_file)
        assert identity.expiry() == now + timedelta(seconds=1000)
        await asyncio.sleep(350)
        assert os.path.exists(config.pair_file)


async def test_damaged_pair_is_replaced_with_a_finding(world: World) -> None:
    world.pki.mkdir()
    (world.pki / "x.pem").write_text("")
    world.link.symlink_to(world.pki / "x.pem")
    identity = world.identity()
    identity.prepare()
    assert any("a new certificate is requested" in finding for finding in world.record.findings())
    async with running(identity.run()):
        await asyncio.sleep(1)
    assert identity.expiry() is not None
    assert not world.record.findings()


async def test_expired_without_bootstrap_credentials_tells_the_way_out(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.give_kubeconfig(-2000, -1000)
    identity = world.identity(bootstrap=False, rotate=False)
    identity.prepare()
    findings = world.record.findings()
    assert any("kubeadm kubeconfig user" in text and "system:node:node-1" in text for text in findings)
    assert [entry.message for entry in caplog.records].count("client certificate expired") == 1


async def test_certificate_that_expires_while_running_is_told_once(world: World) -> None:
    world.give_kubeconfig(-10, 100)
    identity = world.identity(bootstrap=False, rotate=False)
    identity.prepare()
    async with running(identity.run()):
        await asyncio.sleep(90)
        assert world.record.findings() == []
        await asyncio.sleep(1000)
    assert len(world.record.findings()) == 1


async def test_agent_ends_five_minutes_after_its_certificate_when_the_server_refuses_it(world: World) -> None:
    # behaviours.md §28: "No valid client certificate for 5 min while the server answers ...: exit."
    world.server.fail_next(Unauthorized, verb="POST", times=1000)
    identity = world.identity()
    identity.prepare()
    async with running(identity.run()):
        with pytest.raises(ClientCertificateLost, match="kubeadm token create"):
            await identity.watch()
    assert 300 <= asyncio.get_running_loop().time() <= 321


async def test_agent_goes_on_while_the_server_is_away(world: World) -> None:
    world.server.down = True
    identity = world.identity()
    identity.prepare()
    async with running(identity.run()):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await identity.watch()


async def test_agent_comes_back_by_itself_with_bootstrap_credentials(world: World) -> None:
    identity = world.identity()
    identity.prepare()
    async with running(identity.run()):
        await asyncio.sleep(1)
        world.server.fail_next(Forbidden, verb="POST", times=8)
        world.server.down = True
        await asyncio.sleep(1100)
        assert identity.expiry() is None
        world.server.down = False
        await asyncio.sleep(400)
        assert identity.expiry() is not None
    assert world.server.connected[-1].token == TOKEN


async def test_kubeconfig_that_is_not_there_is_an_error_without_bootstrap(world: World) -> None:
    with pytest.raises(KubeconfigError, match=r"kubelet\.conf"):
        world.identity(bootstrap=False).prepare()


async def test_token_reaches_neither_record_nor_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    world.server.fail_next(Unauthorized, verb="POST", times=3)
    identity = world.identity()
    identity.prepare()
    async with running(identity.run()):
        await asyncio.sleep(30)
    said = "".join(str(vars(entry)) for entry in caplog.records) + "".join(world.record.findings())
    assert TOKEN.partition(".")[2] not in said
    assert "PRIVATE KEY" not in said
