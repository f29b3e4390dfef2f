"""Names of bootstrap requests, and what the status of a signing request means."""

from __future__ import annotations

import pytest

from glasslet.api.codec import decode
from glasslet.identity.bootstrap import request_name
from glasslet.identity.key_program import make
from glasslet.identity.keys import KeyOrder
from glasslet.identity.rotation import node_subject
from glasslet.identity.signing_objects import CertificateSigningRequest, Issued, NotIssued, outcome

KEY = b"""-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAHW80VoAoGCCqGSM49
AwEHoUQDQgAE+1A4jylJjQqTrSXsTDQDe508w8ykeH62/tq+KzAD6sifd2XKnWKI
5v9zT1zQjzpZIc9UshuzmLUKwNJXf6B0cg==
-----END EC PRIVATE KEY-----
"""


def test_bootstrap_request_is_named_after_key_and_wishes() -> None:
    # behaviours.md §28: "CSR node-csr-<base64url of a SHA-512/256 over its fields>"; the name was computed with Go.
    made = make(KeyOrder(subject=node_subject("node-1"), key=KEY))
    name = request_name(made.public_key, node_subject("node-1"), ("digital signature", "client auth"))
    assert name == "node-csr-zhIHcl06KLINNgnMzZev1blYKX8bHZq5bMBiVejLPI0"


def request(conditions: str = "", certificate: str = "") -> CertificateSigningRequest:
    status = f'"conditions": [{conditions}], "certificate": "{certificate}"'
    return decode(f'{{"metadata": {{"name": "csr-1", "uid": "u"}}, "status": {{{status}}}}}', CertificateSigningRequest)


APPROVED = '{"type": "Approved", "status": "True"}'


def test_approved_and_signed_is_issued() -> None:
    assert outcome(request(APPROVED, "aGVsbG8="), "u") == Issued(b"hello")


@pytest.mark.parametrize("found", [request(), request(APPROVED)], ids=["new", "approved"])
def test_unfinished_request_is_waited_for(found: CertificateSigningRequest) -> None:
    assert outcome(found, "u") is None


@pytest.mark.parametrize("kind", ["Denied", "Failed"])
def test_refused_request_says_why(kind: str) -> None:
    conditions = f'{{"type": "{kind}", "status": "True", "reason": "Policy", "message": "not you"}}, {APPROVED}'
    end = outcome(request(conditions), "u")
    assert isinstance(end, NotIssued)
    assert "Policy, not you" in end.why


def test_request_of_another_uid_is_not_ours() -> None:
    assert isinstance(outcome(request(APPROVED, "aGVsbG8="), "other"), NotIssued)
