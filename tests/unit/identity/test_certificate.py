"""What certificates say, read without a cryptography library."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from glasslet.identity.certificate import (
    BadCertificate,
    Subject,
    key_block,
    read_certificates,
    read_request,
)
from glasslet.identity.key_program import make
from glasslet.identity.keys import KeyOrder
from tests.builders.signing import SigningAuthority

MADE_BY_GO = b"""-----BEGIN CERTIFICATE-----
MIIBmDCCAT6gAwIBAgIBBzAKBggqhkjOPQQDAjA6MR8wCAYDVQQKEwFiMBMGA1UE
ChMMc3lzdGVtOm5vZGVzMRcwFQYDVQQDDA5zeXN0ZW06bm9kZTrDtjAgFw0yNjAx
MDIwMzA0MDVaGA8yMDU1MDEwMjAzMDQwNVowOjEfMAgGA1UEChMBYjATBgNVBAoT
DHN5c3RlbTpub2RlczEXMBUGA1UEAwwOc3lzdGVtOm5vZGU6w7YwWTATBgcqhkjO
PQIBBggqhkjOPQMBBwNCAAT7UDiPKUmNCpOtJexMNAN7nTzDzKR4frb+2r4rMAPq
yJ93ZcqdYojm/3NPXNCPOlkhz1SyG7OYtQrA0ld/oHRyozMwMTAvBgNVHREEKDAm
ggliLmV4YW1wbGWCAWGHEP0AAAAAAAAAAAAAAAAAAAGHBAoAAAEwCgYIKoZIzj0E
AwIDSAAwRQIhANvBlc9gD/Q6Esg4suYQZW/FZmuhyd496TML4X8pcdfiAiBXua+o
Xu/ZCiwiqujkK+o2bw2Hj8kMd18gtmKXMPCJpQ==
-----END CERTIFICATE-----
"""
SUBJECT = Subject(
    common_name="system:node:node-1",
    organizations=("system:nodes",),
    dns_names=("node-1", "node-1.example"),
    ip_addresses=("10.0.0.1", "fd00::1"),
)


def test_certificate_of_another_maker_is_read() -> None:
    (certificate,) = read_certificates(MADE_BY_GO)
    assert certificate.subject == Subject(
        common_name="system:node:ö",
        organizations=("b", "system:nodes"),
        dns_names=("a", "b.example"),
        ip_addresses=("10.0.0.1", "fd00::1"),
    )
    assert certificate.not_before == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert certificate.not_after == datetime(2055, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_leaf_is_the_first_of_a_chain() -> None:
    own, _ = SigningAuthority().pair(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    names = [one.subject.common_name for one in read_certificates(own + MADE_BY_GO)]
    assert names == ["system:node:node-1", "system:node:ö"]


def test_signed_request_keeps_names_and_addresses() -> None:
    made = make(KeyOrder(subject=SUBJECT))
    signed = SigningAuthority().sign(made.request, datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    assert read_certificates(signed)[0].subject == SUBJECT


def test_request_shows_its_public_key() -> None:
    made = make(KeyOrder(subject=SUBJECT))
    assert read_request(made.request).public_key == made.public_key


def test_new_keys_are_on_p256() -> None:
    # behaviours.md §28: "Keys: ECDSA P-256."
    request = x509.load_pem_x509_csr(make(KeyOrder(subject=SUBJECT)).request)
    assert request.public_key().curve.name == "secp256r1"  # type: ignore[union-attr]
    assert request.is_signature_valid


def test_given_key_is_used_again() -> None:
    first = make(KeyOrder(subject=SUBJECT))
    assert make(KeyOrder(subject=SUBJECT, key=first.key)).public_key == first.public_key


def test_node_name_longer_than_x509_allows_is_no_problem() -> None:
    subject = Subject(common_name="system:node:" + "n" * 200, organizations=("system:nodes",))
    assert read_request(make(KeyOrder(subject=subject)).request).subject.common_name == subject.common_name


def test_key_is_found_among_certificates() -> None:
    certificate, key = SigningAuthority().pair(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    assert key_block(certificate + key) == key


@pytest.mark.parametrize("data", [b"", b"hello", b"-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(BadCertificate):
        read_certificates(data)


@given(st.integers(min_value=60, max_value=len(MADE_BY_GO) - 60), st.binary(min_size=1, max_size=8))
def test_damaged_certificate_is_an_error_and_no_crash(at: int, noise: bytes) -> None:
    damaged = MADE_BY_GO[:at] + noise + MADE_BY_GO[at + len(noise) :]
    with contextlib.suppress(BadCertificate):
        assert read_certificates(damaged)


def test_key_never_shows() -> None:
    made = make(KeyOrder(subject=SUBJECT))
    shown = repr(made) + repr(KeyOrder(subject=SUBJECT, key=made.key))
    assert "PRIVATE" not in shown


@pytest.mark.parametrize(
    "pem", [b"-----BEGIN A-----\n" * 60_000, b"x" * 65_537], ids=["blocks without an end", "other"]
)
def test_very_long_certificate_is_refused_before_it_is_read(pem: bytes) -> None:
    # Blocks without an end held the event loop for minutes.
    with pytest.raises(BadCertificate, match="at most 65536"):
        read_certificates(pem)
