"""kubeconfig files."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from glasslet.kubeapi.credentials import _ExecStatus
from glasslet.kubeapi.kubeconfig import ExecEnv, KubeconfigError, _User, load_kubeconfig

SOUND = """
apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: "https://192.0.2.1:6443/", certificate-authority: pki/ca.crt, tls-server-name: a}}
users: [{name: u, user: {client-certificate: /abs/me.crt, client-key: me.key, token: s3cret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def write(folder: Path, text: str) -> str:
    file = folder / "kubeconfig"
    file.write_text(text)
    return str(file)


def test_relative_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    config = load_kubeconfig(write(tmp_path, SOUND))
    assert config.ca_file == str(tmp_path / "pki/ca.crt")
    assert (config.certificate_file, config.key_file) == ("/abs/me.crt", str(tmp_path / "me.key"))


def test_trailing_slash_of_the_server_is_dropped(tmp_path: Path) -> None:
    assert load_kubeconfig(write(tmp_path, SOUND)).server == "https://192.0.2.1:6443"


def test_repr_shows_no_secret(tmp_path: Path) -> None:
    assert "s3cret" not in repr(load_kubeconfig(write(tmp_path, SOUND)))


def test_token_file_wins_over_token(tmp_path: Path) -> None:
    config = load_kubeconfig(write(tmp_path, SOUND.replace("token: s3cret", "token: s3cret, tokenFile: tok")))
    assert (config.token, config.token_file) == ("", str(tmp_path / "tok"))


def test_inline_data_wins_over_a_file(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    text = SOUND.replace(
        "certificate-authority: pki/ca.crt", f"certificate-authority: x, certificate-authority-data: {data}"
    )
    config = load_kubeconfig(write(tmp_path, text))
    assert (config.ca_file, config.ca_data) == ("", b"PEM")


def test_groups_to_act_as_become_one_header_each(tmp_path: Path) -> None:
    config = load_kubeconfig(write(tmp_path, SOUND.replace("token: s3cret", "as: me, as-groups: [a, b]")))
    assert config.impersonate == (("Impersonate-User", "me"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("current-context: x", "current-context: z"), "contexts has no entry 'z' (there: x)"),
        (("cluster: c, user: u", "cluster: d, user: u"), "clusters has no entry 'd' (there: c)"),
        (("https://192.0.2.1:6443/", "192.0.2.1"), "want an https URL"),
        (("tls-server-name: a", "insecure-skip-tls-verify: true"), "exclude each other"),
        (("client-key: me.key", "client-key-data: '***'"), "client-key-data is not base64"),
        (("token: s3cret", "token: [1]"), "users[0].user.token"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    path = write(tmp_path, SOUND.replace(*change))
    with pytest.raises(KubeconfigError) as error:
        load_kubeconfig(path)
    assert words in str(error.value)
    assert path in str(error.value)
    assert "s3cret" not in str(error.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="nowhere"):
        load_kubeconfig(str(tmp_path / "nowhere"))


def test_no_part_of_a_kubeconfig_shows_a_secret() -> None:
    parts = (ExecEnv(name="TOKEN", value="hidden"), _User(token="hidden", password="hidden", client_key_data="hidden"))
    assert "hidden" not in repr(parts)
    assert "hidden" not in repr(_ExecStatus(token="hidden", client_key_data="hidden"))
