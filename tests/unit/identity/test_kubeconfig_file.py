"""The kubeconfig that bootstrapping leaves behind, and the judgement of one that is there."""

from __future__ import annotations

import base64
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from glasslet.identity.kubeconfig_file import client_certificate, resulting_config, write_kubeconfig
from glasslet.kubeapi.kubeconfig import Kubeconfig, load_kubeconfig
from tests.builders.signing import SigningAuthority

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BOOTSTRAP = Kubeconfig(origin="b", server="https://10.0.0.1:6443", ca_data=b"CA", token="abcdef.0123456789abcdef")


def kubeconfig(path: Path, user: dict[str, str]) -> str:
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
    return str(path)


def with_certificate(folder: Path, days: int) -> str:
    certificate, key = SigningAuthority().write_pair(folder, NOW - timedelta(days=30), NOW + timedelta(days=days))
    return kubeconfig(folder / "kubelet.conf", {"client-certificate": certificate, "client-key": key})


def test_resulting_kubeconfig_points_to_the_pair_and_holds_no_token(tmp_path: Path) -> None:
    # behaviours.md §28: "writes the pair file and its link, and the kubeconfig pointing to the link"
    path = tmp_path / "new" / "kubelet.conf"
    write_kubeconfig(resulting_config(BOOTSTRAP, str(path), "/pki/kubelet-client-current.pem"))
    document = yaml.safe_load(path.read_text())
    assert document["users"] == [
        {
            "name": "default-auth",
            "user": {
                "client-certificate": "/pki/kubelet-client-current.pem",
                "client-key": "/pki/kubelet-client-current.pem",
            },
        }
    ]
    assert document["contexts"][0]["context"] == {
        "cluster": "default-cluster",
        "namespace": "default",
        "user": "default-auth",
    }
    cluster = {"server": "https://10.0.0.1:6443", "certificate-authority-data": base64.b64encode(b"CA").decode()}
    assert document["clusters"] == [{"name": "default-cluster", "cluster": cluster}]
    assert "abcdef" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_written_kubeconfig_is_read_as_the_one_that_was_meant(tmp_path: Path) -> None:
    config = resulting_config(BOOTSTRAP, str(tmp_path / "kubelet.conf"), "/pki/kubelet-client-current.pem")
    write_kubeconfig(config)
    assert load_kubeconfig(config.origin) == config


def test_valid_certificate_needs_no_bootstrap(tmp_path: Path) -> None:
    there = client_certificate(with_certificate(tmp_path, 30), NOW)
    assert (there.problem, there.expires) == ("", NOW + timedelta(days=30))


def test_expired_certificate_is_a_problem(tmp_path: Path) -> None:
    there = client_certificate(with_certificate(tmp_path, -1), NOW)
    assert "expired at 2026-05-31" in there.problem
    assert there.expires == NOW - timedelta(days=1)


@pytest.mark.parametrize("user", [{"token": "t"}, {"client-certificate": "missing.pem", "client-key": "missing.pem"}])
def test_kubeconfig_without_usable_certificate_is_a_problem(tmp_path: Path, user: dict[str, str]) -> None:
    assert client_certificate(kubeconfig(tmp_path / "k", user), NOW).problem


def test_missing_or_broken_kubeconfig_is_a_problem(tmp_path: Path) -> None:
    assert "does not exist" in client_certificate(str(tmp_path / "none"), NOW).problem
    (tmp_path / "broken").write_text("clusters: 3")
    assert client_certificate(str(tmp_path / "broken"), NOW).problem
