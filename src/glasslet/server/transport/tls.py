"""The serving side of TLS: certificate and client CA from files, read again when they change.

OpenSSL verifies client certificates during the handshake, and Python offers no way to accept a wrong one there: it is
refused with a TLS alert where the Go kubelet would answer 401. No certificate at all is fine, as upstream.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from dataclasses import dataclass, replace

from glasslet.server.transport.tls_options import TLSOptions, apply, insecure_among

log = logging.getLogger(__name__)

CHECK_SECONDS = 60.0
"""How often the files are looked at (gate ReloadKubeletServerCertificateFile, behaviours.md §28)."""


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """PEM files. `client_ca` "" means that client certificates are not asked for. `awaited`: certificate and key may
    come later (serverTLSBootstrap); until then every handshake fails."""

    certificate: str
    key: str
    client_ca: str = ""
    awaited: bool = False

    def paths(self) -> tuple[str, ...]:
        """Those that are set."""
        return tuple(path for path in (self.certificate, self.key, self.client_ca) if path)


class BadTLSFile(Exception):
    """A file cannot be loaded. Says which, and why."""


class ServingTLS:
    """Owns the SSL context of a server. New connections see changed files; open ones keep what they have."""

    def __init__(self, *, files: TLSFiles, options: TLSOptions) -> None:
        self._files = files
        self._options = options
        self._stamp = _stamp(files)
        first = _loadable(files, options)
        self._current = _load(first, options)
        for name in insecure_among(options.cipher_suites):
            log.warning("Insecure TLS cipher suite in use", extra={"suite": name})
        # The context given to the listener never changes; each handshake is handed over to the current one.
        self.context = _load(first, options)
        self.context.sni_callback = self._hand_over

    def refresh(self) -> bool:
        """Reads changed files. False if nothing changed, or what is there now is not usable: then the old stays."""
        stamp = _stamp(self._files)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._current = _load(self._files, self._options)
        except BadTLSFile as error:
            log.error("Serving certificate not reloaded, the old one stays", extra={"error": str(error)})
            return False
        log.info("Serving certificate reloaded", extra={"file": self._files.certificate})
        return True

    def use(self, certificate: str, key: str) -> None:
        """Another pair of files counts from now on."""
        self._files = replace(self._files, certificate=certificate, key=key)
        self._stamp = ()
        self.refresh()

    async def run(self) -> None:
        """Looks at the files for ever."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self.refresh()

    def _hand_over(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        connection.context = self._current


def _loadable(files: TLSFiles, options: TLSOptions) -> TLSFiles:
    """The files to begin with: without a pair if that may come later and cannot be loaded yet."""
    if not files.awaited:
        return files
    try:
        _load(files, options)
    except BadTLSFile as error:
        log.warning("No serving certificate yet, TLS handshakes fail", extra={"why": str(error)})
        return replace(files, certificate="", key="")
    return files


def _load(files: TLSFiles, options: TLSOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    apply(options, context)
    try:
        if files.certificate:
            context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise BadTLSFile(f"certificate {files.certificate} with key {files.key}: {error}") from error
    if files.client_ca:
        try:
            context.load_verify_locations(files.client_ca)
        except OSError as error:
            raise BadTLSFile(f"authentication.x509.clientCAFile {files.client_ca}: {error}") from error
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; it has to be in the clear")


def _stamp(files: TLSFiles) -> tuple[object, ...]:
    stamps: list[object] = []
    for path in files.paths():
        try:
            info = os.stat(path)
            stamps.append((info.st_mtime_ns, info.st_size, info.st_ino))
        except OSError:
            stamps.append(None)
    return tuple(stamps)
