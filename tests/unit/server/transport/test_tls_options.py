"""Go's names of TLS versions and cipher suites."""

from __future__ import annotations

import ssl

import pytest

from glasslet.server.transport.tls_options import (
    INSECURE,
    OLD_NAMES,
    SECURE,
    BadTLSOption,
    TLSOptions,
    apply,
    insecure_among,
    minimum_version,
    openssl_ciphers,
)


def context(options: TLSOptions) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    apply(options, made)
    return made


def offered(options: TLSOptions) -> set[str]:
    return {c["name"] for c in context(options).get_ciphers() if c["protocol"] != "TLSv1.3"}


def test_no_version_is_tls_1_2() -> None:
    # config-fields.md, tlsMinVersion: "empty acts as VersionTLS12"
    assert minimum_version("") is ssl.TLSVersion.TLSv1_2


def test_unknown_version_is_refused_with_the_choices() -> None:
    with pytest.raises(BadTLSOption, match=r'tlsMinVersion "TLS1\.2": allowed are VersionTLS10, VersionTLS11'):
        minimum_version("TLS1.2")


def test_unknown_suite_is_refused_with_its_name() -> None:
    with pytest.raises(BadTLSOption, match='tlsCipherSuites "RC5": allowed are'):
        openssl_ciphers(["RC5"])


@pytest.mark.parametrize(("name", "openssl"), (SECURE | OLD_NAMES | INSECURE).items())
def test_every_suite_is_one_that_openssl_knows(name: str, openssl: str) -> None:
    assert openssl in offered(TLSOptions(cipher_suites=(name,)))


def test_no_suites_mean_the_secure_ones() -> None:
    assert offered(TLSOptions()) <= set(SECURE.values())


def test_suites_of_tls_1_3_alone_leave_only_tls_1_3() -> None:
    made = context(TLSOptions(cipher_suites=("TLS_AES_128_GCM_SHA256",)))
    assert made.minimum_version is ssl.TLSVersion.TLSv1_3


def test_insecure_suites_are_told_apart() -> None:
    suites = ("TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA")
    assert insecure_among(suites) == [suites[0], suites[2]]
