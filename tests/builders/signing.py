"""A certificate authority that signs requests, and clients with certificates of any life."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from glasslet.identity.certificate import Subject
from glasslet.identity.key_program import make
from glasslet.identity.keys import KeyOrder, SigningInput
from glasslet.identity.rotation import node_subject

_PEM = serialization.Encoding.PEM


async def make_key(order: KeyOrder) -> SigningInput:
    """Makes keys in this process: virtual time has no patience for another one."""
    return make(order)


class SigningAuthority:
    """Signs what it is given."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "signer")])

    def sign(self, request: bytes, begin: datetime, end: datetime) -> bytes:
        """A certificate for a request (PEM)."""
        asked = x509.load_pem_x509_csr(request)
        builder = x509.CertificateBuilder(self._name, asked.subject, asked.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(begin.replace(tzinfo=None)).not_valid_after(end.replace(tzinfo=None))
        for extension in asked.extensions:
            builder = builder.add_extension(extension.value, extension.critical)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(_PEM)

    def pair(self, begin: datetime, end: datetime, subject: Subject | None = None) -> tuple[bytes, bytes]:
        """Certificate and key, PEM; of node-1 unless another subject is given."""
        made = make(KeyOrder(subject=subject or node_subject("node-1")))
        return self.sign(made.request, begin, end), made.key

    def write_pair(self, folder: Path, begin: datetime, end: datetime) -> tuple[str, str]:
        """Certificate and key as files."""
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = self.pair(begin, end)
        (folder / "client.crt").write_bytes(certificate)
        (folder / "client.key").write_bytes(key)
        return str(folder / "client.crt"), str(folder / "client.key")
