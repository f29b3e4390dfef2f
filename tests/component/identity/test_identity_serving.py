"""The HTTPS port before, while and after the cluster signs its certificate."""

from __future__ import annotations

import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from glasslet.concurrency.clock import SystemClock
from glasslet.identity.certificate import Subject
from glasslet.identity.pair_store import PairStore
from glasslet.server.transport.tls import BadTLSFile, ServingTLS, TLSFiles
from glasslet.server.transport.tls_options import TLSOptions
from tests.builders.signing import SigningAuthority
from tests.component.server_fixture import serving
from tests.fakes.http_client import Client

NOW = datetime.now(UTC)
SUBJECT = Subject(common_name="system:node:n", organizations=("system:nodes",), dns_names=("localhost",))


def trusting_anybody() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@pytest.fixture
def store(tmp_path: Path) -> PairStore:
    return PairStore(folder=str(tmp_path), prefix="kubelet-server")


def awaited(store: PairStore) -> ServingTLS:
    files = TLSFiles(store.current_path, store.current_path, awaited=True)
    return ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())


async def test_handshakes_fail_until_there_is_a_certificate(store: PairStore) -> None:
    # behaviours.md §28: "until issued TLS handshakes fail with no serving certificate"
    tls = awaited(store)
    async with serving(tls=tls) as running:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await Client.connect(running.server.port, trusting_anybody())
        pair = store.update(*SigningAuthority().pair(NOW, NOW + timedelta(days=1), SUBJECT), now=NOW)
        tls.use(pair.certificate_file, pair.key_file)
        answer = await (await running.client(trusting_anybody())).ask("GET", "/healthz")
    assert answer.status == 200


async def test_renewed_certificate_is_what_new_connections_see(store: PairStore) -> None:
    authority = SigningAuthority()
    store.update(*authority.pair(NOW, NOW + timedelta(days=1), SUBJECT), now=NOW)
    tls = awaited(store)
    async with serving(tls=tls) as running:
        seen = []
        for days in (2, 3):
            client = await running.client(trusting_anybody())
            seen.append(client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
            pair = authority.pair(NOW, NOW + timedelta(days=days), SUBJECT)
            store.update(*pair, now=NOW + timedelta(seconds=days))
            tls.use(store.current_path, store.current_path)
    assert seen[0] != seen[1]


async def test_damaged_pair_of_an_earlier_agent_is_as_good_as_none(store: PairStore, tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("")
    Path(store.current_path).symlink_to(tmp_path / "x.pem")
    async with serving(tls=awaited(store)) as running:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await Client.connect(running.server.port, trusting_anybody())


def test_awaited_pair_excuses_no_missing_client_ca(store: PairStore, tmp_path: Path) -> None:
    files = TLSFiles(store.current_path, store.current_path, str(tmp_path / "none.crt"), awaited=True)
    with pytest.raises(BadTLSFile, match="clientCAFile"):
        ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())


def test_running_agent_does_not_carry_the_cryptography_library() -> None:
    question = "import sys, glasslet.daemon, glasslet.assembly.https; print('cryptography' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
