"""Makes a key and a signing request: `python -m glasslet.identity.key_program`, JSON in and out.

A process of its own, because the cryptography library costs 16 MB that a running agent has no use for. Keys travel
through pipes only, never through arguments or files.
"""

from __future__ import annotations

import sys
import warnings
from ipaddress import ip_address

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from glasslet.identity.certificate import Subject
from glasslet.identity.keys import KeyOrder, SigningInput

_PEM = serialization.Encoding.PEM


def make(order: KeyOrder) -> SigningInput:
    """Key (a new one on P-256 unless one is given) and request."""
    key = _load(order.key) if order.key else ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder(_name(order.subject))
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in order.subject.dns_names]
    names += [x509.IPAddress(ip_address(address)) for address in order.subject.ip_addresses]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(_PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return SigningInput(
        key=private,
        public_key=public,
        request=builder.sign(key, hashes.SHA256()).public_bytes(_PEM),
        is_rsa=isinstance(key, rsa.RSAPrivateKey),
    )


def _load(pem: bytes) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise ValueError("want an EC or RSA key")
    return key


def _name(subject: Subject) -> x509.Name:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in subject.organizations]
    with warnings.catch_warnings():
        # X.509 allows 64 characters; node names are longer at times, and Kubernetes signs these, too.
        warnings.simplefilter("ignore")
        return x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name, _validate=False)])


def main() -> int:
    """One order, one answer."""
    answer = make(msgspec.json.decode(sys.stdin.buffer.read(), type=KeyOrder))
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
