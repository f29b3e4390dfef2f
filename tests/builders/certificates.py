"""Certificates for tests: a CA, and what it signs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_AN_HOUR_AGO = timedelta(hours=-1)


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "test-ca") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = self._builder(self._name, self._key).add_extension(basic, critical=True)
        self.pem = self._signed(self._certificate)

    def write(self, path: Path) -> str:
        """Writes the CA certificate; gives its path."""
        path.write_bytes(self.pem)
        return str(path)

    def issue(
        self,
        folder: Path,
        *,
        common_name: str = "",
        organizations: tuple[str, ...] = (),
        server: bool = False,
        life: timedelta = timedelta(days=1),
        begins: timedelta = _AN_HOUR_AGO,
        address: str = "",
    ) -> tuple[str, str]:
        """A certificate and its key in `folder`; gives their paths. `life`, `begins`: from now on; `address`: an IP
        address that it is for, beside localhost."""
        folder.mkdir(exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
        if common_name:
            names.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(x509.Name(names), key, life, begins)
        valid_for: list[x509.GeneralName] = [x509.DNSName("localhost")]
        if address:
            valid_for.append(x509.IPAddress(ip_address(address)))
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName(valid_for), critical=False)
        (folder / "tls.crt").write_bytes(self._signed(builder))
        (folder / "tls.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return str(folder / "tls.crt"), str(folder / "tls.key")

    def _builder(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        life: timedelta = timedelta(days=1),
        begins: timedelta = _AN_HOUR_AGO,
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(issuer_name=self._name, subject_name=subject, public_key=key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now + begins).not_valid_after(now + life)

    def _signed(self, builder: x509.CertificateBuilder) -> bytes:
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
