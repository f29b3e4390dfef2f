"""Makes the kubelet's own serving certificate: `python -m glasslet.server.transport.self_signed CERTIFICATE KEY HOST`.

A process of its own, because the cryptography library costs 16 MB that a running agent has no use for.
kubelet.crt holds the leaf and the CA that signed it, 1 year, valid from 1 h ago; the CA's key is thrown away.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(seconds=31536000)
BACK_DATED = timedelta(hours=1)


def make(host: str, now: datetime) -> tuple[bytes, bytes]:
    """Certificate chain and key as PEM. The only subject alternative name is the host name."""
    stamp = int(now.timestamp())
    ca_key, ca_name = _key(), _name(f"{host}-ca@{stamp}")
    ca = _builder(ca_name, ca_name, ca_key, now)
    ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    ca = ca.add_extension(_usage(signs=True), critical=True)
    leaf_key = _key()
    leaf = _builder(_name(f"{host}@{stamp}"), ca_name, leaf_key, now)
    leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    leaf = leaf.add_extension(_usage(signs=False), critical=True)
    leaf = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    leaf = leaf.add_extension(x509.SubjectAlternativeName([_san(host)]), critical=False)
    chain = b"".join(
        builder.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM) for builder in (leaf, ca)
    )
    key = leaf_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return chain, key


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _name(common_name: str) -> x509.Name:
    # 64 characters is the longest common name that X.509 allows.
    host, at, stamp = common_name.rpartition("@")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[: 64 - len(stamp) - 1] + at + stamp)])


def _builder(subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey, now: datetime) -> x509.CertificateBuilder:
    start = now - BACK_DATED
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(start).not_valid_after(start + LIFE)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=signs,
        crl_sign=False,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _san(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def write(path: str, data: bytes, mode: int) -> None:
    """Puts a file in place as a whole."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def main(arguments: list[str]) -> int:
    """Writes the pair; the key first, so that a certificate is never there without it."""
    certificate, key, host = arguments
    chain, secret = make(host, datetime.now(UTC))
    write(key, secret, 0o600)
    write(certificate, chain, 0o644)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
