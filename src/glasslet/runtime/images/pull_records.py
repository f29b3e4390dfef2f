"""Records of pulls, so that an image pulled with one pod's credentials is not given to pods without any. Pure.

    ImagePullIntent      a pull of this image was begun
    ImagePulledRecord    this image (by the runtime's id) was pulled by this node, with these credentials, by repository

Both are JSON of kubelet.config.k8s.io/v1alpha1, the same files as the Go kubelet's. Of credentials they hold a hash and
where they came from, never themselves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.times import rfc3339
from glasslet.runtime.protocols import AuthSource, RegistryAuth

API_VERSION = "kubelet.config.k8s.io/v1alpha1"
MANY_SECRETS = 100
"""With that many secrets in a record, one that only matches is not added any more."""

_HTML_SAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class SourceKind(StrEnum):
    """Kinds of `AuthSource`."""

    SECRET = "Secret"  # noqa: S105 - a kind
    SERVICE_ACCOUNT = "ServiceAccount"


class _Strict(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pass


class PullSecret(_Strict, frozen=True, kw_only=True):
    """A Secret whose credentials opened the registry."""

    uid: str = ""
    namespace: str = ""
    name: str = ""
    credential_hash: str = ""

    def is_same_object(self, other: PullSecret) -> bool:
        """Whether both are the same Secret, whatever its content."""
        return (self.uid, self.namespace, self.name) == (other.uid, other.namespace, other.name)


class PullServiceAccount(_Strict, frozen=True, kw_only=True):
    """A service account with whose token a plugin got credentials that opened the registry."""

    uid: str = ""
    namespace: str = ""
    name: str = ""


class RecordedCredentials(_Strict, frozen=True, kw_only=True):
    """The credentials that opened the registry for an image. `node_pods_accessible`: every pod here may use it."""

    kubernetes_secrets: tuple[PullSecret, ...] | None = None
    kubernetes_service_accounts: tuple[PullServiceAccount, ...] | None = None
    node_pods_accessible: bool = False

    @property
    def secrets(self) -> tuple[PullSecret, ...]:
        """The Secrets; empty if there are none."""
        return self.kubernetes_secrets or ()

    @property
    def accounts(self) -> tuple[PullServiceAccount, ...]:
        """The service accounts; empty if there are none."""
        return self.kubernetes_service_accounts or ()


class PulledRecord(_Strict, frozen=True, kw_only=True):
    """An image that this node pulled. `credential_mapping` by repository in normal form."""

    kind: str = "ImagePulledRecord"
    api_version: str = API_VERSION
    last_updated_time: datetime
    image_ref: str
    credential_mapping: Mapping[str, RecordedCredentials] | None = None

    def credentials(self, repository: str) -> RecordedCredentials | None:
        """The credentials for that repository; None if there are none."""
        return (self.credential_mapping or {}).get(repository)


class PullIntent(_Strict, frozen=True, kw_only=True):
    """A pull that was begun; `image` as the pod names it."""

    kind: str = "ImagePullIntent"
    api_version: str = API_VERSION
    image: str


class BadRecord(ValueError):
    """A file that is no record."""


def file_name(subject: str) -> str:
    """Where the record of an image (name or id) is."""
    return f"sha256-{hashlib.sha256(subject.encode()).hexdigest()}"


def encode_intent(image: str) -> bytes:
    """An intent as JSON."""
    return msgspec.json.encode(PullIntent(image=image)) + b"\n"


def encode_record(record: PulledRecord) -> bytes:
    """A record as JSON, fields that are empty left out where the Go kubelet leaves them out."""
    mapping = {}
    for repository, credentials in (record.credential_mapping or {}).items():
        shown = msgspec.to_builtins(credentials)
        mapping[repository] = {name: value for name, value in shown.items() if value or name == "kubernetesSecrets"}
    body: dict[str, object] = {
        "kind": record.kind,
        "apiVersion": record.api_version,
        "lastUpdatedTime": rfc3339(record.last_updated_time),
        "imageRef": record.image_ref,
    }
    if mapping:
        body["credentialMapping"] = mapping
    return msgspec.json.encode(body) + b"\n"


def decode_intent(data: bytes) -> PullIntent:
    """Raises BadRecord."""
    found = _decode(data, PullIntent)
    _require(found.kind == "ImagePullIntent" and found.api_version == API_VERSION)
    return found


def decode_record(data: bytes) -> PulledRecord:
    """Raises BadRecord."""
    found = _decode(data, PulledRecord)
    _require(found.kind == "ImagePulledRecord" and found.api_version == API_VERSION)
    return found


def credential_hash(auth: RegistryAuth) -> str:
    """SHA-256 of the credentials as the Go kubelet writes them: records stay good when one replaces the other."""
    fields = {"username": auth.username, "password": auth.password, "auth": auth.auth}
    fields |= {"identitytoken": auth.identity_token, "registrytoken": auth.registry_token}
    text = json.dumps(
        {name: value for name, value in fields.items() if value}, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(text.translate(_HTML_SAFE).encode("utf-8", "surrogatepass")).hexdigest()


def credentials_of(auth: RegistryAuth | None) -> RecordedCredentials:
    """The record of a pull with these credentials (None: without any): which pods may use the image."""
    source = auth.source if auth is not None else None
    if auth is None or source is None:
        return RecordedCredentials(node_pods_accessible=True)
    if source.kind == SourceKind.SECRET:
        return RecordedCredentials(kubernetes_secrets=(_secret(auth, source),))
    return RecordedCredentials(kubernetes_service_accounts=(_account(source),))


def secrets_of(auths: Iterable[RegistryAuth]) -> tuple[PullSecret, ...]:
    """The Secrets among these credentials."""
    return tuple(
        _secret(auth, auth.source)
        for auth in auths
        if auth.source is not None and auth.source.kind == SourceKind.SECRET
    )


def account_of(auths: Iterable[RegistryAuth]) -> PullServiceAccount | None:
    """The pod's service account, if any of these credentials is from its token."""
    sources = (auth.source for auth in auths if auth.source is not None)
    return next((_account(source) for source in sources if source.kind == SourceKind.SERVICE_ACCOUNT), None)


def merged(record: PulledRecord, repository: str, new: RecordedCredentials, now: datetime) -> PulledRecord:
    """The record with the additions of a pull or a match; the same object if there are none."""
    known = record.credentials(repository)
    after = new if known is None else _together(known, new)
    if after == known or after == RecordedCredentials():
        return record
    return replace(
        record, last_updated_time=now, credential_mapping={**(record.credential_mapping or {}), repository: after}
    )


def _together(known: RecordedCredentials, new: RecordedCredentials) -> RecordedCredentials:
    if known.node_pods_accessible:
        return known
    if new.node_pods_accessible:
        return RecordedCredentials(node_pods_accessible=True)
    by_place = {(s.namespace, s.name, s.uid): s for s in (*known.secrets, *new.secrets)}
    accounts = {(a.namespace, a.name, a.uid): a for a in (*known.accounts, *new.accounts)}
    return RecordedCredentials(
        kubernetes_secrets=tuple(by_place[place] for place in sorted(by_place)) or None,
        kubernetes_service_accounts=tuple(accounts[place] for place in sorted(accounts)) or None,
    )


def _secret(auth: RegistryAuth, source: AuthSource) -> PullSecret:
    return PullSecret(
        uid=source.uid, namespace=source.namespace, name=source.name, credential_hash=credential_hash(auth)
    )


def _account(source: AuthSource) -> PullServiceAccount:
    return PullServiceAccount(uid=source.uid, namespace=source.namespace, name=source.name)


_Kind = TypeVar("_Kind", PulledRecord, PullIntent)


def _decode(data: bytes, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRecord(f"cannot be read: {error}") from None


def _require(right: bool) -> None:
    if not right:
        raise BadRecord(f"is of another kind, want one of {API_VERSION}")
