"""Rotated client certificates reach API clients by a file that appears and changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.identity.pair_store import PairStore
from glasslet.kubeapi.credentials import Credentials
from glasslet.kubeapi.kubeconfig import ExecPlugin, Kubeconfig
from tests.builders.signing import SigningAuthority

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Ticking(LoopClock):
    """Each look is a second later."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0

    def monotonic(self) -> float:
        self.time += 1.0
        return self.time


@pytest.fixture
def store(tmp_path: Path) -> PairStore:
    return PairStore(folder=str(tmp_path), prefix="kubelet-client")


async def test_token_counts_until_there_is_a_pair(store: PairStore) -> None:
    config = Kubeconfig(origin="k", server="https://s", token="t", pair_file=store.current_path)
    credentials = Credentials(config=config, clock=Ticking())
    assert (await credentials.current()).token == "t"
    certificate, key = SigningAuthority().pair(NOW, NOW + timedelta(days=1))
    store.update(certificate, key, now=NOW)
    identity = await credentials.current()
    assert (identity.certificate, identity.key, identity.token) == (certificate + key, certificate + key, "")


async def test_rotated_pair_is_another_identity(store: PairStore) -> None:
    authority = SigningAuthority()
    store.update(*authority.pair(NOW, NOW + timedelta(days=1)), now=NOW)
    config = Kubeconfig(origin="k", server="https://s", pair_file=store.current_path)
    credentials = Credentials(config=config, clock=Ticking())
    first = await credentials.current()
    assert await credentials.current() == first
    store.update(*authority.pair(NOW, NOW + timedelta(days=2)), now=NOW + timedelta(seconds=1))
    assert await credentials.current() != first


async def test_pair_spares_the_credential_plugin(store: PairStore) -> None:
    store.update(*SigningAuthority().pair(NOW, NOW + timedelta(days=1)), now=NOW)
    plugin = ExecPlugin(api_version="client.authentication.k8s.io/v1", command="/does/not/exist")
    config = Kubeconfig(origin="k", server="https://s", exec=plugin, pair_file=store.current_path)
    assert (await Credentials(config=config, clock=Ticking()).current()).certificate
