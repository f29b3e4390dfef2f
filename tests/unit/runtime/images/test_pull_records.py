"""What is kept of pulls: the files' form, and what a pull adds. Quotes: behaviours.md §8."""

from __future__ import annotations

import hashlib
import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from glasslet.runtime.images.pull_record_files import PullRecordFiles
from glasslet.runtime.images.pull_records import (
    BadRecord,
    PulledRecord,
    PullSecret,
    PullServiceAccount,
    RecordedCredentials,
    credential_hash,
    credentials_of,
    decode_record,
    encode_record,
    merged,
)
from glasslet.runtime.protocols import AuthSource, RegistryAuth

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)
IMAGE = "sha256:0123"
APP = "r.example/app"
EMPTY = PulledRecord(last_updated_time=NOON, image_ref=IMAGE)


def secret(name: str = "pull", digest: str = "aa") -> PullSecret:
    return PullSecret(uid=f"uid-{name}", namespace="default", name=name, credential_hash=digest)


def by(*secrets: PullSecret) -> RecordedCredentials:
    return RecordedCredentials(kubernetes_secrets=secrets)


# "`<root-dir>/image_manager/pulling/` and `/pulled/` (0700), files 0600 named sha256-<hex> ..., JSON
# ImagePullIntent/ImagePulledRecord (kubelet.config.k8s.io/v1alpha1)"
def test_an_intent_is_a_private_file_named_after_the_image(tmp_path: Path) -> None:
    files = PullRecordFiles(str(tmp_path))
    files.intend("r.example/app:1")
    (path,) = (tmp_path / "image_manager" / "pulling").iterdir()
    assert path.name == "sha256-" + hashlib.sha256(b"r.example/app:1").hexdigest()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert json.loads(path.read_text()) == {
        "kind": "ImagePullIntent",
        "apiVersion": "kubelet.config.k8s.io/v1alpha1",
        "image": "r.example/app:1",
    }
    assert files.intended("r.example/app:1")
    files.forget_intent("r.example/app:1")
    files.forget_intent("r.example/app:1")
    assert not files.intended("r.example/app:1")


def test_a_record_has_the_form_of_the_go_kubelet() -> None:
    shown = json.loads(encode_record(merged(EMPTY, APP, by(secret()), LATER)))
    assert shown == {
        "kind": "ImagePulledRecord",
        "apiVersion": "kubelet.config.k8s.io/v1alpha1",
        "lastUpdatedTime": "2026-01-01T13:00:00Z",
        "imageRef": IMAGE,
        "credentialMapping": {
            APP: {
                "kubernetesSecrets": [
                    {"uid": "uid-pull", "namespace": "default", "name": "pull", "credentialHash": "aa"}
                ]
            }
        },
    }
    everybody = json.loads(encode_record(merged(EMPTY, APP, RecordedCredentials(node_pods_accessible=True), LATER)))
    assert everybody["credentialMapping"][APP] == {"kubernetesSecrets": None, "nodePodsAccessible": True}


def test_a_record_survives_the_disk_and_rubbish_beside_it(tmp_path: Path) -> None:
    files = PullRecordFiles(str(tmp_path))
    record = merged(EMPTY, APP, by(secret()), LATER)
    files.write(record)
    assert files.record(IMAGE) == record
    folder = tmp_path / "image_manager" / "pulled"
    (folder / "sha256-bad").write_text("{")
    (folder / "notes").write_text("{")
    assert files.records() == (record,)
    (folder / "sha256-bad").unlink()
    next(folder.glob("sha256-*")).write_text('{"kind": "ImagePulledRecord"}')
    with pytest.raises(BadRecord):
        files.record(IMAGE)
    files.remove(IMAGE)
    assert files.record(IMAGE) is None


@pytest.mark.parametrize(
    "change", [{"kind": "Pod"}, {"apiVersion": "v1"}, {"extra": 1}, {"imageRef": 3}, {"credentialMapping": {"a": []}}]
)
def test_another_form_is_refused(change: dict[str, object]) -> None:
    body = json.loads(encode_record(EMPTY))
    with pytest.raises(BadRecord):
        decode_record(json.dumps({**body, **change}).encode())


def test_the_hash_is_that_of_the_go_kubelet() -> None:
    auth = RegistryAuth(username="ann", password="a<b&ü")
    text = '{"username":"ann","password":"a\\u003cb\\u0026ü"}'
    assert credential_hash(auth) == hashlib.sha256(text.encode()).hexdigest()


def test_credentials_of_the_node_or_none_make_an_image_everybody_s() -> None:
    everybody = RecordedCredentials(node_pods_accessible=True)
    assert credentials_of(None) == everybody
    assert credentials_of(RegistryAuth(username="node")) == everybody
    own = AuthSource(kind="ServiceAccount", uid="u", namespace="default", name="builder")
    account = PullServiceAccount(uid="u", namespace="default", name="builder")
    assert credentials_of(RegistryAuth(username="ann", source=own)).accounts == (account,)


def test_a_pull_adds_to_what_is_known_and_nothing_new_changes_nothing() -> None:
    first = merged(EMPTY, APP, by(secret("b")), NOON)
    both = merged(first, APP, by(secret("a")), LATER)
    known = both.credentials(APP)
    assert known is not None
    assert [s.name for s in known.secrets] == ["a", "b"]
    assert both.last_updated_time == LATER
    assert merged(both, APP, by(secret("a")), LATER) is both
    assert merged(both, APP, RecordedCredentials(), LATER) is both


def test_a_secret_that_changed_replaces_itself() -> None:
    changed = merged(merged(EMPTY, APP, by(secret(digest="aa")), NOON), APP, by(secret(digest="bb")), LATER)
    known = changed.credentials(APP)
    assert known is not None
    assert known.secrets == (secret(digest="bb"),)


def test_what_everybody_may_use_stays_so() -> None:
    everybody = merged(
        merged(EMPTY, APP, by(secret()), NOON), APP, RecordedCredentials(node_pods_accessible=True), LATER
    )
    assert everybody.credentials(APP) == RecordedCredentials(node_pods_accessible=True)
    assert merged(everybody, APP, by(secret()), LATER) is everybody
