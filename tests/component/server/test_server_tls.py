"""TLS of the HTTPS port: own certificate, client certificates, versions, and files that change."""

from __future__ import annotations

import asyncio
import ssl
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from glasslet.api.pod_log_options import PodLogOptions
from glasslet.concurrency.clock import SystemClock
from glasslet.identity.certificate import Subject
from glasslet.identity.keys import KeyOrder, make_signing_input
from glasslet.server.access.authentication import CertificateAuthenticator
from glasslet.server.access.users import Attributes
from glasslet.server.transport.limits import ConnectionLimits
from glasslet.server.transport.serving_certificate import ServingPair
from glasslet.server.transport.tls import BadTLSFile, ServingTLS, TLSFiles
from glasslet.server.transport.tls_options import TLSOptions
from tests.builders.certificates import Authority
from tests.component.server_fixture import Running, access, serving
from tests.fakes.http_client import Client
from tests.fakes.server_sources import FakeLogs, FakeNode, FakeStreams
from tests.fakes.streaming_server import SPDY, spdy_data, streaming_server


class Everyone:
    """Allows all, and remembers who asked."""

    def __init__(self) -> None:
        self.asked: list[Attributes] = []

    async def allows(self, attributes: Attributes) -> bool:
        self.asked.append(attributes)
        return True


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> TLSFiles:
    certificate, key = authority.issue(tmp_path / "server", server=True)
    return TLSFiles(certificate, key, authority.write(tmp_path / "ca.crt"))


def client_context(authority: Authority, pair: tuple[str, str] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem.decode())
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


async def test_client_certificate_names_user_and_groups(authority: Authority, files: TLSFiles, tmp_path: Path) -> None:
    rules = Everyone()
    pair = authority.issue(tmp_path / "client", common_name="kube-apiserver", organizations=("a", "b"))
    tls = ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())
    who = access(CertificateAuthenticator(SystemClock()), authorizer=rules)
    async with serving(who=who, tls=tls) as running:
        answer = await (await running.client(client_context(authority, pair))).ask("GET", "/pods")
    assert answer.status == 200
    assert (rules.asked[0].user.name, rules.asked[0].user.groups) == (
        "kube-apiserver",
        ("a", "b", "system:authenticated"),
    )


async def test_no_client_certificate_is_401(authority: Authority, files: TLSFiles) -> None:
    tls = ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())
    async with serving(who=access(CertificateAuthenticator(SystemClock())), tls=tls) as running:
        answer = await (await running.client(client_context(authority))).ask("GET", "/pods")
    assert answer.status == 401


async def test_certificate_without_a_common_name_is_401(authority: Authority, files: TLSFiles, tmp_path: Path) -> None:
    pair = authority.issue(tmp_path / "client", organizations=("system:masters",))
    tls = ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())
    async with serving(who=access(CertificateAuthenticator(SystemClock()), anonymous=True), tls=tls) as running:
        answer = await (await running.client(client_context(authority, pair))).ask("GET", "/pods")
    assert answer.status == 401


async def ask_for_pods(running: Running, tls: ssl.SSLContext) -> None:
    """With TLS 1.3 the refusal arrives only with the first bytes read."""
    await (await running.client(tls)).ask("GET", "/pods")


@pytest.mark.parametrize("kind", ["other authority", "server certificate"])
async def test_wrong_client_certificate_gets_nothing(
    authority: Authority, files: TLSFiles, tmp_path: Path, kind: str
) -> None:
    signer = Authority("other") if kind == "other authority" else authority
    pair = signer.issue(tmp_path / "client", common_name="mallory", server=kind == "server certificate")
    tls = ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())
    async with serving(who=access(CertificateAuthenticator(SystemClock()), anonymous=True), tls=tls) as running:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await ask_for_pods(running, client_context(authority, pair))


async def test_changed_certificate_serves_new_connections(
    authority: Authority, files: TLSFiles, tmp_path: Path
) -> None:
    tls = ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())
    other = Authority("next")
    async with serving(tls=tls) as running:
        old = await running.client(client_context(authority))
        other.issue(tmp_path / "server", server=True)
        assert tls.refresh()
        new = await running.client(client_context(other))
        assert (await new.ask("GET", "/healthz")).status == 200
        assert (await old.ask("GET", "/healthz")).status == 200


async def test_changed_client_ca_is_what_new_connections_are_checked_against(
    authority: Authority, files: TLSFiles, tmp_path: Path
) -> None:
    # config-fields.md: "verification follows later changes of the file"
    tls = ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())
    other = Authority("next")
    pair = other.issue(tmp_path / "client", common_name="bob")
    async with serving(who=access(CertificateAuthenticator(SystemClock())), tls=tls) as running:
        other.write(Path(files.client_ca))
        assert tls.refresh()
        answer = await (await running.client(client_context(authority, pair))).ask("GET", "/pods")
    assert answer.status == 200


async def test_unusable_change_leaves_the_old_certificate(
    authority: Authority, files: TLSFiles, caplog: pytest.LogCaptureFixture
) -> None:
    tls = ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())
    Path(files.certificate).write_text("half a file")
    assert not tls.refresh()
    assert "Serving certificate not reloaded" in caplog.text
    async with serving(tls=tls) as running:
        assert (await (await running.client(client_context(authority))).ask("GET", "/healthz")).status == 200


async def test_old_tls_version_is_refused(authority: Authority, files: TLSFiles) -> None:
    tls = ServingTLS(files=files, options=TLSOptions(min_version="VersionTLS13"), clock=SystemClock())
    old = client_context(authority)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(tls=tls) as running:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await Client.connect(running.server.port, old)
        assert (await (await running.client(client_context(authority))).ask("GET", "/healthz")).status == 200


async def test_cipher_suites_of_the_configuration_are_the_only_ones(authority: Authority, files: TLSFiles) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    tls = ServingTLS(files=files, options=TLSOptions(cipher_suites=(suite,)), clock=SystemClock())
    context = client_context(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(tls=tls) as running:
        client = await running.client(context)
        assert client.writer.get_extra_info("cipher")[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


async def test_handshake_that_is_not_made_is_given_up(files: TLSFiles) -> None:
    tls = ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())
    limits = ConnectionLimits(handshake_seconds=0.2, shutdown_seconds=0.1)
    async with serving(tls=tls, limits=limits) as running:
        client = await running.client()
        async with asyncio.timeout(60):
            assert await client.ended()


async def test_exec_passes_through_tls(authority: Authority, files: TLSFiles) -> None:
    tls = ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())
    async with streaming_server() as runtime:
        node = FakeNode(streams=FakeStreams(runtime.url))
        async with serving(node, tls=tls, client_tls=client_context(authority)) as running:
            client = await running.client()
            asking = asyncio.ensure_future(client.ask("POST", "/exec/default/web/main?output=1", SPDY))
            session = await runtime.session()
            assert (await asking).status == 101
            client.writer.write(b"in")
            assert await session.reader.readexactly(2) == b"in"
            end = spdy_data(3, b"x" * 300_000) + spdy_data(1, b"{}")
            await session.say(end)
            session.vanish()
            assert await client.reader.read() == end


async def test_logs_stream_through_tls(authority: Authority, files: TLSFiles) -> None:
    async def large(_options: PodLogOptions) -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 524288

    tls = ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())
    node = FakeNode(logs=FakeLogs(large))
    async with serving(node, tls=tls, client_tls=client_context(authority)) as running:
        answer = await (await running.client()).ask("GET", "/containerLogs/default/web/main")
    assert (len(answer.body), answer.complete) == (20 * 524288, True)


@pytest.mark.parametrize("broken", ["certificate", "key", "client_ca"])
def test_file_that_cannot_be_loaded_is_named(files: TLSFiles, broken: str) -> None:
    Path(getattr(files, broken)).unlink()
    with pytest.raises(BadTLSFile, match=Path(getattr(files, broken)).name):
        ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())


async def test_own_certificate_is_made_as_the_go_kubelet_makes_it(tmp_path: Path) -> None:
    # behaviours.md §28: "self-signed kubelet.crt (leaf and its CA, 0644) and kubelet.key (RSA 2048, 0600): 1 year,
    # notBefore 1 h back, CN <host name>@<unix time>, only SAN the host name."
    pki = tmp_path / "pki"
    certificate, key = await ServingPair(certificate="", key="", cert_dir=str(pki), host="node-1").files()
    leaf, ca = x509.load_pem_x509_certificates(Path(certificate).read_bytes())
    assert (certificate, key) == (str(pki / "kubelet.crt"), str(pki / "kubelet.key"))
    assert stat.S_IMODE(Path(certificate).stat().st_mode) == 0o644
    assert stat.S_IMODE(Path(key).stat().st_mode) == 0o600
    assert stat.S_IMODE(pki.stat().st_mode) == 0o755
    host, _, made = str(leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value).partition("@")
    assert (host, abs(int(made) - datetime.now(UTC).timestamp()) < 60) == ("node-1", True)
    assert leaf.not_valid_after_utc - leaf.not_valid_before_utc == timedelta(days=365)
    assert timedelta(minutes=59) < datetime.now(UTC) - leaf.not_valid_before_utc < timedelta(minutes=62)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["node-1"]
    assert leaf.public_key().key_size == 2048  # type: ignore[union-attr]
    leaf.verify_directly_issued_by(ca)
    again = await ServingPair(certificate="", key="", cert_dir=str(pki), host="node-1").files()
    assert x509.load_pem_x509_certificates(Path(again[0]).read_bytes())[0] == leaf
    assert sorted(path.name for path in pki.iterdir()) == ["kubelet.crt", "kubelet.key"]
    ServingTLS(files=TLSFiles(certificate, key), options=TLSOptions(), clock=SystemClock())


async def test_a_pair_that_was_begun_is_waited_for(tmp_path: Path) -> None:
    pair = ServingPair(certificate="", key="", cert_dir=str(tmp_path), host="node-1")
    pair.begin()
    certificate, key = await pair.files()
    ServingTLS(files=TLSFiles(certificate, key), options=TLSOptions(), clock=SystemClock())


def test_a_configured_pair_is_not_made(tmp_path: Path) -> None:
    ServingPair(certificate="/etc/tls.crt", key="/etc/tls.key", cert_dir=str(tmp_path / "pki"), host="node-1").begin()
    assert not (tmp_path / "pki").exists()


async def test_half_a_pair_is_fatal(tmp_path: Path) -> None:
    # config-fields.md, tlsCertFile: "only one readable is fatal"
    (tmp_path / "kubelet.crt").write_text("x")
    with pytest.raises(BadTLSFile, match=r"kubelet\.key is not readable"):
        await ServingPair(certificate="", key="", cert_dir=str(tmp_path), host="node-1").files()


async def test_configured_certificate_needs_its_key(tmp_path: Path) -> None:
    with pytest.raises(BadTLSFile, match="tlsPrivateKeyFile"):
        await ServingPair(certificate="/etc/tls.crt", key="", cert_dir=str(tmp_path), host="node-1").files()


async def test_module_in_the_working_directory_does_not_make_the_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path / "tmp")
    monkeypatch.chdir(tmp_path / "tmp")
    certificate, _ = await ServingPair(certificate="", key="", cert_dir=str(tmp_path / "pki"), host="node-1").files()
    assert Path(certificate).exists()


async def test_module_in_the_working_directory_does_not_get_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert (await make_signing_input(KeyOrder(subject=Subject(common_name="system:node:node-1")))).request


def plant(folder: Path) -> None:
    """Puts another package of the agent's name into a folder."""
    (folder / "glasslet").mkdir(parents=True)
    (folder / "glasslet" / "__init__.py").write_text("raise SystemExit(7)")
