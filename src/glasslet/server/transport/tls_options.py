"""`tlsMinVersion` and `tlsCipherSuites`: Go's names, and OpenSSL's for the same."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from msgspec import Struct

VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

SECURE = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
OLD_NAMES = {
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
INSECURE = {
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
}
GONE_FROM_OPENSSL = frozenset(
    (
        *("TLS_RSA_WITH_RC4_128_SHA", "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", "TLS_ECDHE_RSA_WITH_RC4_128_SHA"),
        *("TLS_RSA_WITH_3DES_EDE_CBC_SHA", "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA"),
    )
)
"""Go still knows these; they are accepted here and never offered."""
TLS13 = frozenset(("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"))
"""Always offered; naming them has no effect."""


class TLSOptions(Struct, frozen=True):
    """`min_version` "" acts as VersionTLS12; no `cipher_suites` mean the secure ones."""

    min_version: str = ""
    cipher_suites: tuple[str, ...] = ()


class BadTLSOption(ValueError):
    """A value that the configuration may not have. Says field, value and what is allowed."""


def minimum_version(name: str) -> ssl.TLSVersion:
    """The lowest version to speak. Raises BadTLSOption."""
    try:
        return VERSIONS[name or "VersionTLS12"]
    except KeyError:
        raise BadTLSOption(f'tlsMinVersion "{name}": allowed are {", ".join(VERSIONS)}') from None


def openssl_ciphers(names: Sequence[str]) -> str:
    """OpenSSL's list for Go's names. Raises BadTLSOption on an unknown one."""
    if not names:
        return ":".join(SECURE.values())
    known = SECURE | OLD_NAMES | INSECURE
    for name in names:
        if name not in known and name not in GONE_FROM_OPENSSL and name not in TLS13:
            allowed = ", ".join(sorted({*known, *GONE_FROM_OPENSSL, *TLS13}))
            raise BadTLSOption(f'tlsCipherSuites "{name}": allowed are {allowed}')
    return ":".join(dict.fromkeys(known[name] for name in names if name in known))


def insecure_among(names: Sequence[str]) -> list[str]:
    """The names that deserve a warning."""
    return [name for name in names if name in INSECURE or name in GONE_FROM_OPENSSL]


def apply(options: TLSOptions, context: ssl.SSLContext) -> None:
    """Sets versions and ciphers. Raises BadTLSOption."""
    lowest = minimum_version(options.min_version)
    ciphers = openssl_ciphers(options.cipher_suites)
    if lowest < ssl.TLSVersion.TLSv1_2:
        # OpenSSL speaks the old versions only at its lowest security level.
        ciphers += ":@SECLEVEL=0"
    context.minimum_version = lowest
    if ciphers:
        context.set_ciphers(ciphers)
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
