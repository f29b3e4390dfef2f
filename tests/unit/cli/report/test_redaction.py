"""A report holds no secrets."""

from __future__ import annotations

import json

import pytest

from glasslet.cli.report.redaction import redacted, scrubbed

JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6Ik5.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
WORDS = "cannot log in to db as admin with hunter2"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"the server refused {JWT}", JWT),
        (f"key is {KEY}", "MIIEowIBAAKCAQEA"),
        ("pull from https://ann:hunter2@registry.test/app failed", "hunter2"),
        ("sent Authorization: Basic YW5uOmh1bnRlcjI=", "YW5uOmh1bnRlcjI="),
        ("curl -H 'authorization: Bearer abc'", "abc"),
        ("exec: DB_PASSWORD=hunter2 not found", "hunter2"),
        ("exec: --token hunter2 db-token='hunter2 hunter3'", "hunter3"),
        ('{"apiKey": "hunter2"}', "hunter2"),
        ("AKIAIOSFODNN7EXAMPLE is not known", "AKIAIOSFODNN7EXAMPLE"),
        ("found wJalrXUtnFEMIxK7MDENGbPxRfiCYEXAMPLEKEYab12", "wJalrXUtnFEMI"),
    ],
)
def test_what_looks_like_a_credential_is_replaced_by_its_length(text: str, secret: str) -> None:
    assert secret not in scrubbed(text)
    assert "<redacted, " in scrubbed(text)


@pytest.mark.parametrize(
    "text",
    [
        'MountVolume.SetUp failed for volume "creds": secret "db" not found',
        "busybox@sha256:9ae97d36d26566ff84e8893c64a6dc4fe8ca6d1144bf5b87b2b85a32def253c7",
        "container 4e6d0e0a3c0e7fd0a0c5c2ab83d9b2f1d4b9c2f0c1c3e4f5a6b7c8d9e0f1a2b3",
        "https://registry.example/v2/library/busybox/manifests/1.36",
        "/var/lib/kubelet/pods/b71ee919-0000-0000-0000-000000000000/volumes/kubernetes.io~projected/kube-api-access-x",
    ],
)
def test_names_identifiers_and_addresses_stay(text: str) -> None:
    assert scrubbed(text) == text


def report(**parts: object) -> dict[str, object]:
    return {"pod": "shop/web", **parts}


CRASHED = report(
    why={
        "sentence": f"shop/web keeps failing: {WORDS}",
        "evidence": [{"label": "last words", "text": WORDS}, {"label": "back-off", "text": "40 s"}],
    },
    description={"containers": [{"state": "terminated", "exitCode": 1, "message": "wrong password hunter2"}]},
    events=[{"reason": "Unhealthy", "message": "Readiness probe failed: hunter2", "at": "", "type": "", "count": 1}],
)


def test_what_containers_wrote_is_left_out_wherever_it_stands() -> None:
    made = json.dumps(redacted(CRASHED, output=False))
    assert "hunter2" not in made
    assert "Readiness probe failed: <7 characters that the container wrote>" in made
    assert "40 s" in made


def test_what_containers_wrote_stays_on_request_but_for_credentials() -> None:
    asked = report(why={"evidence": [{"label": "last words", "text": f"{WORDS} password=hunter3"}]})
    made = json.dumps(redacted(asked, output=True))
    assert WORDS in made
    assert "hunter3" not in made


def test_headers_of_a_manifest_address_are_redacted_whatever_they_hold() -> None:
    configuration = {"staticPodURLHeader": {"X-Key": ["abc"]}, "staticPodURLHeader.X-Other": "abc", "port": 10250}
    made = redacted(report(configuration=configuration), output=True)["configuration"]
    assert "abc" not in json.dumps(made)
    assert "10250" in json.dumps(made)


def test_labels_named_after_secrets_are_redacted() -> None:
    labels = {"app": "web", "deploy-token": "abc"}
    made = redacted(report(description={"labels": labels}), output=True)["description"]
    assert made == {"labels": {"app": "web", "deploy-token": "<redacted, 3 characters>"}}
