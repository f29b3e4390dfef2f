"""Projected volumes: several sources that share one folder, so their paths must not meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from glasslet.api.field_errors import FieldPath, forbidden, invalid, not_supported, required
from glasslet.api.formats import dns_subdomain_problems
from glasslet.api.validation.rules import Errors, file_below_volume, file_mode, present
from glasslet.api.validation.selectors import label_selector_errors
from glasslet.api.validation.signers import signer_name_errors
from glasslet.api.volume import (
    ClusterTrustBundleProjection,
    DownwardAPIVolumeFile,
    KeyToPath,
    PodCertificateProjection,
    ServiceAccountTokenProjection,
    VolumeProjection,
)

FileRule = Callable[[DownwardAPIVolumeFile, FieldPath], Errors]
_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_DAY = 24 * 60 * 60


def projection_errors(sources: tuple[VolumeProjection, ...], path: FieldPath, downward_file: FileRule) -> Errors:
    """All sources of a projected volume."""
    taken: set[str] = set()
    for number, source in enumerate(sources):
        here = path.child("sources").at(number)
        yield from _one(source, path, here, downward_file)
        for file, owner in _files(source):
            if file in taken:
                yield invalid(path, owner, "conflicting duplicate paths")
            taken.add(file)
        if sum(getattr(source, name) is not None for name in source.__struct_fields__) > 1:
            yield forbidden(here, "may not specify more than 1 volume type per source")


def key_path_errors(item: KeyToPath, path: FieldPath) -> Errors:
    """One key of a Secret or ConfigMap and the file it goes to."""
    yield from present(item.key, path.child("key"))
    yield from present(item.path, path.child("path"))
    yield from file_below_volume(item.path, path.child("path"))
    yield from file_mode(item.mode, path.child("mode"))


def _one(source: VolumeProjection, volume: FieldPath, path: FieldPath, downward_file: FileRule) -> Errors:
    for name, keyed in (("secret", source.secret), ("configMap", source.config_map)):
        if keyed is not None:
            yield from present(keyed.name, path.child(name, "name"))
            for number, item in enumerate(keyed.items):
                yield from key_path_errors(item, path.child(name, "items").at(number))
    if source.downward_api is not None:
        for file in source.downward_api.items:
            yield from downward_file(file, path.child("downwardAPI"))
    if source.service_account_token is not None:
        yield from _token(source.service_account_token, volume, path.child("serviceAccountToken"))
    if source.cluster_trust_bundle is not None:
        yield from _trust_bundle(source.cluster_trust_bundle, path.child("clusterTrustBundle"))
    if source.pod_certificate is not None:
        yield from _certificate(source.pod_certificate, path.child("podCertificate"))


def _files(source: VolumeProjection) -> Iterator[tuple[str, str]]:
    """Every file the source makes, and the name upstream blames for it."""
    for keyed in (source.secret, source.config_map):
        if keyed is not None:
            yield from ((item.path, keyed.name) for item in keyed.items if item.path)
    if source.downward_api is not None:
        yield from ((file.path, file.path) for file in source.downward_api.items if file.path)
    if source.cluster_trust_bundle is not None:
        yield source.cluster_trust_bundle.path, source.cluster_trust_bundle.path
    if source.pod_certificate is not None:
        yield from ((file, file) for _, file in _certificate_files(source.pod_certificate))


def _token(token: ServiceAccountTokenProjection, volume: FieldPath, path: FieldPath) -> Errors:
    seconds = token.expiration_seconds or 0
    if seconds < 600:
        yield invalid(path.child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes")
    if seconds > 2**32:
        yield invalid(path.child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds")
    if not token.path:
        yield required(volume.child("path"))
    else:
        yield from file_below_volume(token.path, volume.child("path"))


def _trust_bundle(bundle: ClusterTrustBundleProjection, path: FieldPath) -> Errors:
    if bundle.name is not None and bundle.signer_name is not None:
        yield invalid(path, bundle, "only one of name and signerName may be used")
    elif bundle.name is not None:
        if not bundle.name:
            yield required(path.child("name"), "must be a valid object name")
        for problem in dns_subdomain_problems(bundle.name.rpartition(":")[2]):
            yield invalid(path.child("name"), bundle.name, f"not a valid clustertrustbundlename: {problem}")
        if bundle.label_selector is not None:
            text = "labelSelector must be unset if name is specified"
            yield invalid(path.child("labelSelector"), bundle.label_selector, text)
    elif bundle.signer_name is not None:
        if not bundle.signer_name:
            yield required(path.child("signerName"), "must be a valid signer name")
        yield from signer_name_errors(bundle.signer_name, path.child("signerName"))
        yield from label_selector_errors(bundle.label_selector, path.child("labelSelector"))
    else:
        yield required(path, "either name or signerName must be specified")
    yield from present(bundle.path, path.child("path"))
    yield from file_below_volume(bundle.path, path.child("path"))


def _certificate(certificate: PodCertificateProjection, path: FieldPath) -> Errors:
    yield from signer_name_errors(certificate.signer_name, path.child("signerName"))
    if certificate.key_type not in _KEY_TYPES:
        yield not_supported(path.child("keyType"), certificate.key_type, _KEY_TYPES)
    seconds = certificate.max_expiration_seconds
    if seconds is not None:
        here = path.child("maxExpirationSeconds")
        own_domain = certificate.signer_name.partition("/")[0].endswith("kubernetes.io")
        longest = _DAY if own_domain else 91 * _DAY
        if seconds < 3600:
            yield invalid(here, seconds, "if provided, maxExpirationSeconds must be >= 3600")
        if seconds > longest:
            yield invalid(here, seconds, f"if provided, maxExpirationSeconds must be <= {longest}")
    files = list(_certificate_files(certificate))
    for name, file in files:
        yield from file_below_volume(file, path.child(name))
    if not files:
        yield required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")


def _certificate_files(certificate: PodCertificateProjection) -> Iterator[tuple[str, str]]:
    named = {
        "credentialBundlePath": certificate.credential_bundle_path,
        "keyPath": certificate.key_path,
        "certificateChainPath": certificate.certificate_chain_path,
    }
    return ((name, file) for name, file in named.items() if file)
