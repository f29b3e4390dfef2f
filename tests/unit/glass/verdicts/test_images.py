"""Why an image is not there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from glasslet.glass.verdicts.pod_rules import is_settled, pod_verdict
from tests.builders.record import START, record, standing, station, waiting
from tests.builders.verdicts import (
    STARTED,
    evidence,
    held,
    reported,
    situation,
    status,
)


def test_an_image_that_waits_for_a_credential_provider_names_it() -> None:
    on = "credential provider ecr for r.example/app"
    waits = (waiting("credentials", on, 3, container="main"),)
    it = situation(now=status(phase="Pending"), record=record(waits=waits, stations=(standing("image", 2, "main"),)))
    verdict = pod_verdict(it)
    assert (verdict.rule, verdict.state) == ("image_pulling", "starting")
    assert f"which waits for {on} " in verdict.sentence
    assert verdict.brief.endswith(on)


@pytest.mark.parametrize(
    "reason",
    [
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    ],
)
def test_every_reason_of_a_failed_image_is_explained_with_a_next_step(reason: str) -> None:
    verdict = pod_verdict(situation(now=status(reported(state=held(reason, "it said so")))))
    assert (verdict.rule, verdict.state) == ("image_failed", "failing")
    assert reason in verdict.sentence
    assert verdict.next_step


def test_an_image_in_back_off_shows_the_time_of_the_next_try() -> None:
    waits = (waiting("back_off", "pull", 95, until=120, container="main"),)
    it = situation(
        now=status(reported(state=held("ImagePullBackOff", "Back-off pulling image"))),
        record=record(*STARTED[:3], station("image", 2, 3, "main", "failed"), waits=waits),
    )
    assert pod_verdict(it).brief == "image docker.io/library/busybox:1.36: ImagePullBackOff, next try in 20 s"
    assert evidence(it)["tried"] == "once"
    assert "image present" not in pod_verdict(it).rest


PULL = 'failed to pull and unpack image "r.example/app:1": failed to resolve reference "r.example/app:1": '
HEAD = 'failed to do request: Head "https://r.example/v2/app/manifests/1": '


@pytest.mark.parametrize(
    ("chain", "cause"),
    [
        (HEAD + "dial tcp 127.0.0.1:5000: connect: connection refused", "127.0.0.1:5000 refused the connection"),
        (HEAD + "dial tcp: lookup r.example on 10.0.0.2:53: no such host", "host r.example is unknown"),
        (HEAD + "dial tcp: lookup r.example: no such host", "host r.example is unknown"),
        (HEAD + "dial tcp 192.0.2.1:443: i/o timeout", "no connection to 192.0.2.1:443: i/o timeout"),
        (
            HEAD + "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "TLS with the registry fails: certificate signed by unknown authority",
        ),
        (
            HEAD + "x509: certificate has expired or is not yet valid: current time 2026-01-01 is after 2025-01-01",
            "TLS with the registry fails: certificate has expired or is not yet valid",
        ),
        (HEAD + "http: server gave HTTP response to HTTPS client", "the registry speaks HTTP, not TLS"),
        ("r.example/app:1: not found", "the registry has no such image or tag"),
        ("unexpected status from HEAD request to https://r.example/v2: 401 Unauthorized", "(unauthorized)"),
        (
            "pull access denied, repository does not exist or may require authorization: insufficient_scope",
            "access denied: the repository does not exist or needs a login",
        ),
        (
            'Head "https://r.example/v2/denied/manifests/1": dial tcp 127.0.0.1:5000: connect: connection refused',
            "127.0.0.1:5000 refused the connection",
        ),
        ("no match for platform in manifest: not found", "the image has no variant for this node's platform"),
        ("write /var/lib/blob: no space left on device: unknown", "no space is left on the runtime's disk"),
        ("unexpected status from GET request to https://r.example: 503 Service Unavailable", "503 Service Unavailable"),
    ],
)
def test_a_failed_pull_names_its_cause_and_keeps_the_chain_as_evidence(chain: str, cause: str) -> None:
    text = f'Back-off pulling image "r.example/app:1": ErrImagePull: {PULL}{chain}'
    it = situation(
        now=status(reported(state=held("ImagePullBackOff", text))),
        record=record(*STARTED[:3], station("image", 62, 63, "main", "failed", PULL)),
    )
    verdict = pod_verdict(it)
    first, _, _ = verdict.sentence.partition(" (ImagePullBackOff)")
    assert first.startswith("default/web cannot get image docker.io/library/busybox:1.36 of container main: ")
    assert first.endswith(cause)
    assert evidence(it)["said"] == text
    assert verdict.since == START + timedelta(seconds=62)
    assert verdict.next_step


def test_the_cause_of_a_pull_comes_from_the_record_where_the_status_has_none() -> None:
    refused = PULL + HEAD + "dial tcp 127.0.0.1:5000: connect: connection refused"
    it = situation(
        now=status(reported(state=held("ImagePullBackOff", "Back-off pulling image"))),
        record=record(*STARTED[:3], station("image", 62, 63, "main", "failed", refused)),
    )
    assert "of container main: 127.0.0.1:5000 refused the connection" in pod_verdict(it).sentence
    assert evidence(it)["last error"] == refused


def test_a_pull_shows_its_image() -> None:
    it = situation(now=status(phase="Pending"), record=record(*STARTED[:3], stations=(standing("image", 88, "main"),)))
    assert pod_verdict(it).brief == "image docker.io/library/busybox:1.36: pulling"
    assert not is_settled(pod_verdict(it))
