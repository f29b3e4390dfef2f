"""Pair files and the link to the one that counts."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from glasslet.identity.certificate import read_certificates
from glasslet.identity.pair_store import BadPair, PairStore
from tests.builders.signing import SigningAuthority

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> SigningAuthority:
    return SigningAuthority()


@pytest.fixture
def store(tmp_path: Path) -> PairStore:
    return PairStore(folder=str(tmp_path / "pki"), prefix="kubelet-client")


def test_nothing_there_is_no_error(store: PairStore) -> None:
    assert store.current() is None


def test_pair_is_one_file_behind_a_link(store: PairStore, authority: SigningAuthority, tmp_path: Path) -> None:
    # behaviours.md §28: "Pair files (certificate and key in one) in cert-dir (0755):
    # kubelet-client-YYYY-MM-DD-HH-MM-SS.pem (local time, 0600), link kubelet-client-current.pem"
    certificate, key = authority.pair(NOW, LATER)
    pair = store.update(certificate, key, now=NOW)
    name = f"kubelet-client-{NOW.astimezone():%Y-%m-%d-%H-%M-%S}.pem"
    link = tmp_path / "pki" / "kubelet-client-current.pem"
    assert os.readlink(link) == str(tmp_path / "pki" / name)
    assert stat.S_IMODE((tmp_path / "pki" / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o755
    assert link.read_bytes() == certificate + key
    assert sorted(os.listdir(tmp_path / "pki")) == sorted([name, "kubelet-client-current.pem"])
    assert pair == store.current()


def test_newer_pair_takes_the_link_over(store: PairStore, authority: SigningAuthority) -> None:
    store.update(*authority.pair(NOW, LATER), now=NOW)
    store.update(*authority.pair(NOW, LATER + timedelta(days=9)), now=LATER)
    pair = store.current()
    assert pair is not None
    assert pair.certificate.not_after == LATER + timedelta(days=9)


def test_key_of_another_certificate_leaves_the_old_pair(store: PairStore, authority: SigningAuthority) -> None:
    store.update(*authority.pair(NOW, LATER), now=NOW)
    before = os.readlink(store.current_path)
    certificate, _ = authority.pair(NOW, LATER)
    _, key = authority.pair(NOW, LATER)
    with pytest.raises(BadPair, match="do not make a pair"):
        store.update(certificate, key, now=LATER)
    assert os.readlink(store.current_path) == before


def test_update_that_an_agent_died_in_is_finished(
    store: PairStore, authority: SigningAuthority, tmp_path: Path
) -> None:
    # behaviours.md §28: "link kubelet-client-current.pem set by renaming kubelet-client-updated.pem"
    store.update(*authority.pair(NOW, LATER), now=NOW)
    os.rename(store.current_path, tmp_path / "pki" / "kubelet-client-updated.pem")
    assert store.current() is not None
    assert os.path.islink(store.current_path)


def test_leftover_of_an_update_does_not_hinder_the_next(
    store: PairStore, authority: SigningAuthority, tmp_path: Path
) -> None:
    store.update(*authority.pair(NOW, LATER), now=NOW)
    (tmp_path / "pki" / "kubelet-client-updated.pem").symlink_to("nowhere")
    store.update(*authority.pair(NOW, LATER), now=LATER)
    assert store.current() is not None


def test_plain_file_in_the_place_of_the_link_is_not_touched(
    store: PairStore, authority: SigningAuthority, tmp_path: Path
) -> None:
    (tmp_path / "pki").mkdir()
    Path(store.current_path).write_text("mine")
    with pytest.raises(BadPair, match="want a link"):
        store.update(*authority.pair(NOW, LATER), now=NOW)
    assert Path(store.current_path).read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"half a file", b"-----BEGIN CERTIFICATE-----\n"])
def test_damaged_pair_is_named(store: PairStore, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "x.pem").write_bytes(content)
    os.symlink(tmp_path / "pki" / "x.pem", store.current_path)
    with pytest.raises(BadPair, match=r"kubelet-client-current\.pem"):
        store.current()


def test_other_files_count_until_there_is_a_link(authority: SigningAuthority, tmp_path: Path) -> None:
    others = authority.write_pair(tmp_path / "given", NOW, LATER)
    store = PairStore(folder=str(tmp_path / "pki"), prefix="kubelet-client", others=others)
    given = store.current()
    assert given is not None
    assert given.certificate_file == others[0]
    store.update(*authority.pair(NOW, LATER), now=NOW)
    pair = store.current()
    assert pair is not None
    assert pair.certificate_file == store.current_path


def test_pair_with_a_chain_is_kept_whole(store: PairStore, authority: SigningAuthority) -> None:
    certificate, key = authority.pair(NOW, LATER)
    other, _ = authority.pair(NOW, LATER)
    store.update(certificate + other, key, now=NOW)
    assert len(read_certificates(Path(store.current_path).read_bytes())) == 2
