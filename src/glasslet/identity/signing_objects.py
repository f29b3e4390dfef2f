"""The API's CertificateSigningRequest (certificates.k8s.io/v1), and the meaning of its status."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER = "kubernetes.io/kubelet-serving"
DIGITAL_SIGNATURE, KEY_ENCIPHERMENT = "digital signature", "key encipherment"
CLIENT_AUTH, SERVER_AUTH = "client auth", "server auth"


class CertificateSigningRequestCondition(Object, frozen=True, kw_only=True):
    """`certificates/v1.CertificateSigningRequestCondition`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_update_time: datetime | None = None
    last_transition_time: datetime | None = None


class CertificateSigningRequestStatus(Object, frozen=True, kw_only=True):
    """`certificates/v1.CertificateSigningRequestStatus`; `certificate` is PEM."""

    conditions: tuple[CertificateSigningRequestCondition, ...] = ()
    certificate: bytes = b""


class CertificateSigningRequestSpec(Object, frozen=True, kw_only=True):
    """`certificates/v1.CertificateSigningRequestSpec`; `request` is PEM. The server fills in the user."""

    request: bytes = b""
    signer_name: str = ""
    expiration_seconds: int | None = None
    usages: tuple[str, ...] = ()
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class CertificateSigningRequest(Object, frozen=True, kw_only=True):
    """`certificates/v1.CertificateSigningRequest`."""

    api_version: str = "certificates.k8s.io/v1"
    kind: str = "CertificateSigningRequest"
    metadata: ObjectMeta = ObjectMeta()
    spec: CertificateSigningRequestSpec = CertificateSigningRequestSpec()
    status: CertificateSigningRequestStatus = CertificateSigningRequestStatus()


class Issued(Struct, frozen=True):
    """Signed: the certificate and its chain, PEM."""

    certificate: bytes


class NotIssued(Struct, frozen=True):
    """There will be no certificate for this request."""

    why: str


def outcome(request: CertificateSigningRequest, uid: str) -> Issued | NotIssued | None:
    """The end of the request with this UID; None while there is none."""
    name = request.metadata.name
    if request.metadata.uid != uid:
        return NotIssued(f"signing request {name} was replaced by another one of the same name")
    conditions = {one.type: one for one in request.status.conditions}
    for kind, word in (("Denied", "denied"), ("Failed", "failed")):
        if kind in conditions:
            reason = ", ".join(text for text in (conditions[kind].reason, conditions[kind].message) if text)
            return NotIssued(f"signing request {name} is {word}: {reason or 'no reason given'}")
    if "Approved" in conditions and request.status.certificate:
        return Issued(request.status.certificate)
    return None
