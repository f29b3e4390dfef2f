"""The serving side of TLS: certificate and client CA from files, read again when they change.

OpenSSL verifies client certificates during the handshake, and Python offers no way to accept a wrong one there: it is
refused with a TLS alert where the Go kubelet would answer 401. No certificate at all is fine, as upstream.

A verification holds for its own connection only. Sessions are never resumed: there are no tickets, and a context that
saw a client certificate under TLS 1.2, whose session cache Python cannot switch off, is replaced. A connection that was
verified by a client CA that no longer counts is closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from glasslet.concurrency.clock import Clock
from glasslet.server.access.users import ClientCertificate
from glasslet.server.transport.tls_options import TLSOptions, apply, insecure_among

log = logging.getLogger(__name__)

CHECK_SECONDS = 10.0
"""The files are checked so often (gate ReloadKubeletServerCertificateFile, behaviours.md §28: every minute)."""


class TLSFiles(Struct, frozen=True):
    """PEM files. `client_ca` "" means that client certificates are not requested. `awaited`: certificate and key may
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
    """Owns the TLS settings of a server. New connections see changed files; open ones keep their certificate."""

    def __init__(self, *, files: TLSFiles, options: TLSOptions, clock: Clock) -> None:
        self._files = files
        self._options = options
        self._clock = clock
        self._stamp = _stamp(files)
        self._loaded = _load(_loadable(files, options), options)
        self._counting = self._loaded.counting(clock.now())
        self._generation = 0
        self._on_ca_lost: list[Callable[[], None]] = []
        for name in insecure_among(options.cipher_suites):
            log.warning("Insecure TLS cipher suite in use", extra={"suite": name})

    def handshake(self) -> Handshake:
        """The settings for the next connection."""
        return Handshake(self, self._loaded.context, self._generation)

    def on_client_ca_lost(self, do: Callable[[], None]) -> None:
        """Calls `do` each time that a client CA no longer counts: it was removed from the file, or it expired."""
        self._on_ca_lost.append(do)

    def ca_holds(self, generation: int) -> bool:
        """True if every client CA of that generation still counts."""
        return generation == self._generation

    def retire(self, context: ssl.SSLContext) -> None:
        """Replaces a context whose cached sessions must not be resumed."""
        if context is not self._loaded.context:
            return
        try:
            self._loaded = self._loaded.again(self._files, self._options)
        except BadTLSFile as error:
            # Sessions of the old context are known by `resumed`, and refused.
            log.warning("TLS settings not renewed", extra={"error": str(error)})

    def refresh(self) -> bool:
        """Reads changed files. False if nothing changed, or what is there now is not usable: then the old stays."""
        changed = False
        stamp = _stamp(self._files)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._loaded = _load(self._files, self._options)
                changed = True
                log.info("Serving certificate reloaded", extra={"file": self._files.certificate})
            except BadTLSFile as error:
                log.error("Serving certificate not reloaded, the old one stays", extra={"error": str(error)})
        self._notice_lost_cas()
        return changed

    def use(self, certificate: str, key: str) -> None:
        """Replaces the pair of files."""
        self._files = replace(self._files, certificate=certificate, key=key)
        self._stamp = ()
        self.refresh()

    async def run(self) -> None:
        """Checks the files until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self.refresh()

    def _notice_lost_cas(self) -> None:
        before, self._counting = self._counting, self._loaded.counting(self._clock.now())
        if before <= self._counting:
            return
        self._generation += 1
        log.info("A client CA no longer counts, connections with client certificates are closed")
        for do in self._on_ca_lost:
            do()


class Handshake:
    """The TLS settings of one connection."""

    def __init__(self, tls: ServingTLS, context: ssl.SSLContext, generation: int) -> None:
        self._tls = tls
        self._generation = generation
        self.context = context

    def certificate(self, connection: ssl.SSLObject, peer: Mapping[str, Any] | None) -> ClientCertificate | None:
        """The client certificate of a connection whose handshake is done; `peer` as `getpeercert()` gives it."""
        if not peer:
            return None
        resumed = bool(connection.session_reused)
        if connection.version() != "TLSv1.3":
            self._tls.retire(self.context)
        return ClientCertificate(
            names=tuple(name for rdn in peer.get("subject", ()) for name in rdn),
            not_before=_moment(peer["notBefore"]),
            not_after=_moment(peer["notAfter"]),
            ca_holds=lambda: self._tls.ca_holds(self._generation),
            resumed=resumed,
        )


class _Loaded(Struct, frozen=True):
    """A context and the client CAs that it verifies against, each with the end of its life."""

    context: ssl.SSLContext
    client_cas: Mapping[bytes, datetime]

    def counting(self, now: datetime) -> frozenset[bytes]:
        """The client CAs that are not expired."""
        return frozenset(ca for ca, end in self.client_cas.items() if now <= end)

    def again(self, files: TLSFiles, options: TLSOptions) -> _Loaded:
        """The same settings in a new context. The client CAs stay as they are, whatever their file holds by now."""
        return _Loaded(_context(files, options, b"".join(self.client_cas)), self.client_cas)


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


def _load(files: TLSFiles, options: TLSOptions) -> _Loaded:
    if not files.client_ca:
        return _Loaded(_context(files, options, b""), {})
    try:
        probe = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        probe.load_verify_locations(files.client_ca)
    except OSError as error:
        raise BadTLSFile(f"authentication.x509.clientCAFile {files.client_ca}: {error}") from error
    # Both lists are in the order of the same store.
    ends = (_moment(str(ca["notAfter"])) for ca in probe.get_ca_certs())
    cas = dict(zip(probe.get_ca_certs(binary_form=True), ends, strict=True))
    if not cas:
        raise BadTLSFile(f"authentication.x509.clientCAFile {files.client_ca}: no CA certificate in it")
    return _Loaded(_context(files, options, b"".join(cas)), cas)


def _context(files: TLSFiles, options: TLSOptions, client_cas: bytes) -> ssl.SSLContext:
    """`client_cas`: DER; empty if client certificates are not requested."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    apply(options, context)
    try:
        if files.certificate:
            context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise BadTLSFile(f"certificate {files.certificate} with key {files.key}: {_pair_words(error)}") from error
    if client_cas:
        context.load_verify_locations(cadata=client_cas)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _pair_words(error: Exception) -> str:
    """OpenSSL names the place in its code; people need the file."""
    if not isinstance(error, ssl.SSLError):
        return str(error)
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key belongs to another certificate"
    return f"one of the two files is damaged or no PEM file ({error.reason or error})"


def _moment(text: str) -> datetime:
    """A time as OpenSSL prints it (`Jan  5 09:34:43 2018 GMT`)."""
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC)


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
