"""Certificate and key on disk, one file per pair, and a link to the pair that counts.

    <folder>/kubelet-client-2026-01-02-03-04-05.pem     certificates, then the key; 0600
    <folder>/kubelet-client-current.pem  ->             the pair in use, moved there as -updated.pem by a rename

The names are the Go kubelet's: either program goes on with what the other one left (behaviours.md §28).
"""

from __future__ import annotations

import contextlib
import os
import ssl
from datetime import datetime

from msgspec import Struct

from glasslet.host.files.small_files import write_atomically
from glasslet.identity.certificate import BadCertificate, Certificate, key_block, read_certificates


class BadPair(Exception):
    """Files that should hold a certificate and its key do not. Says which file and what is wrong."""


class Pair(Struct, frozen=True, kw_only=True):
    """A usable certificate with its key, where it is, and what the leaf says."""

    certificate_file: str
    key_file: str
    certificate: Certificate

    def valid_at(self, now: datetime) -> bool:
        """False once it is expired."""
        return now <= self.certificate.not_after


class PairStore:
    """One kind of pair (`prefix` kubelet-client or kubelet-server) of this node.

    `others`: certificate and key files that count as long as there is no link."""

    def __init__(self, *, folder: str, prefix: str, others: tuple[str, str] = ("", "")) -> None:
        self.folder = os.path.abspath(folder)
        """The folder of the pairs."""
        self._prefix = prefix
        self._others = others

    @property
    def current_path(self) -> str:
        """The link."""
        return f"{self.folder}/{self._prefix}-current.pem"

    def current(self) -> Pair | None:
        """The pair that counts; None if there is none. Raises BadPair, OSError."""
        self._finish_interrupted_update()
        link, plain = self.current_path, f"{self.folder}/{self._prefix}"
        for certificate, key in ((link, link), self._others, (f"{plain}.crt", f"{plain}.key")):
            if certificate and key and os.path.exists(certificate) and os.path.exists(key):
                return load_pair(certificate, key)
        return None

    def update(self, certificate: bytes, key: bytes, *, now: datetime) -> Pair:
        """Makes this pair (PEM) the current one. Raises BadPair, OSError; then the old one stays."""
        os.makedirs(self.folder, mode=0o755, exist_ok=True)
        path = f"{self.folder}/{self._prefix}-{now.astimezone():%Y-%m-%d-%H-%M-%S}.pem"
        self._refuse_plain_file(self.current_path)
        write_atomically(path, certificate.strip() + b"\n" + key_block(key), mode=0o600)
        pair = load_pair(path, path)
        updated = self._updated_path()
        self._refuse_plain_file(updated)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(updated)
        os.symlink(path, updated)
        os.rename(updated, self.current_path)
        return Pair(certificate_file=self.current_path, key_file=self.current_path, certificate=pair.certificate)

    def _updated_path(self) -> str:
        return f"{self.folder}/{self._prefix}-updated.pem"

    def _finish_interrupted_update(self) -> None:
        """An agent may have died between making the new link and moving it into place."""
        updated = self._updated_path()
        if not os.path.exists(self.current_path) and os.path.islink(updated):
            os.rename(updated, self.current_path)

    def _refuse_plain_file(self, path: str) -> None:
        if os.path.lexists(path) and not os.path.islink(path):
            raise BadPair(f"{path}: want a link that this agent may move, found a file; move it away")


def load_pair(certificate_file: str, key_file: str) -> Pair:
    """Reads a pair and checks that the key belongs to the certificate. Raises BadPair."""
    try:
        with open(certificate_file, "rb") as file:
            certificates = read_certificates(file.read())
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate_file, key_file, password=_no_password)
    except ssl.SSLError as error:
        raise BadPair(f"{certificate_file}: certificate and key do not make a pair: {error.reason or error}") from None
    except OSError as error:
        raise BadPair(f"{certificate_file}: {error.strerror or error}") from None
    except BadCertificate as error:
        raise BadPair(f"{certificate_file}: {error}") from None
    except ValueError:
        raise BadPair(f"{key_file}: the key is encrypted; it has to be in the clear") from None
    return Pair(certificate_file=certificate_file, key_file=key_file, certificate=certificates[0])


def _no_password() -> str:
    raise ValueError("encrypted")
