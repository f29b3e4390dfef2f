"""The certificate to serve with: the configured one, else kubelet.crt and kubelet.key, made if they are not there."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys

from glasslet.concurrency.own_threads import OwnThreads
from glasslet.config.loading import Loaded
from glasslet.host.files.small_files import move_aside
from glasslet.host.machine import node_name
from glasslet.server.transport.tls import BadTLSFile


class ServingPair:
    """Paths of certificate and key (behaviours.md §28). `certificate` and `key` as configured, "" when they are not.

    Making a pair takes a process and a quarter of a second: begun early, it is there in time."""

    def __init__(self, *, certificate: str, key: str, cert_dir: str, host: str) -> None:
        self._configured = certificate, key
        self._cert_dir = cert_dir
        self._host = host
        self._maker: subprocess.Popen[bytes] | None = None
        self.finding = ""
        """A finding about the pair that an earlier agent made."""

    def begin(self) -> None:
        """Starts to make the pair where it is needed; does not wait.

        Raises BadTLSFile when only one of the two is there, or none can be made."""
        if not any(self._configured) and (not _is_there(*self._own()) or self._move_damaged_aside()):
            try:
                os.makedirs(self._cert_dir, mode=0o755, exist_ok=True)
            except OSError as error:
                raise BadTLSFile(f"certificate directory {self._cert_dir}: {error.strerror}") from error
            self._maker = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", "glasslet.server.transport.self_signed", *self._own(), self._host],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )

    async def files(self) -> tuple[str, str]:
        """Both paths; the files are there. Raises BadTLSFile when one is missing or none can be made."""
        certificate, key = self._configured
        if certificate or key:
            if not (certificate and key):
                missing = "tlsPrivateKeyFile" if certificate else "tlsCertFile"
                raise BadTLSFile(f'{missing} "": it has to be set together with the other file of the pair')
            return certificate, key
        if self._maker is None:
            self.begin()
        if self._maker is not None:
            await self._made(self._maker)
        return self._own()

    def _move_damaged_aside(self) -> bool:
        """True if the pair that is there is unusable. The agent made it itself, so it can make another."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._own(), password=_no_password)
        except ValueError:
            return False  # encrypted, so not made here: reported when it is loaded
        except OSError as error:
            became = [move_aside(path) for path in self._own()]
            old = ", ".join(became)
            self.finding = f"serving certificate {self._own()[0]}: {error}; replaced by a new one, the old pair: {old}"
            return True
        return False

    def _own(self) -> tuple[str, str]:
        return os.path.join(self._cert_dir, "kubelet.crt"), os.path.join(self._cert_dir, "kubelet.key")

    async def _made(self, maker: subprocess.Popen[bytes]) -> None:
        try:
            _, said = await OwnThreads("serving certificate").run(maker.communicate)
        except asyncio.CancelledError:
            maker.kill()  # its end ends the thread
            raise
        if maker.returncode != 0:
            last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise BadTLSFile(f"self-signed certificate {self._own()[0]}: {last}")


def _no_password() -> str:
    raise ValueError("the key is encrypted")


def _is_there(certificate: str, key: str) -> bool:
    """True if both are there; raises BadTLSFile for one alone."""
    readable = [os.access(path, os.R_OK) for path in (certificate, key)]
    if any(readable) and not all(readable):
        there, missing = (certificate, key) if readable[0] else (key, certificate)
        raise BadTLSFile(f"{there} is there but {missing} is not readable: both are needed, or none to make a new pair")
    return all(readable)


def begin_serving_pair(loaded: Loaded) -> ServingPair:
    """The pair for the HTTPS port; it is being made if this agent will serve with one of its own. Called before the
    agent is loaded, which takes as long. Raises BadTLSFile, ValueError (no node name)."""
    configuration, options = loaded.configuration, loaded.options
    pair = ServingPair(
        certificate=configuration.tls_cert_file,
        key=configuration.tls_private_key_file,
        cert_dir=options.cert_dir,
        host=node_name(options.hostname_override),
    )
    signed_by_cluster = configuration.server_tls_bootstrap and options.kubeconfig
    if configuration.enable_server and configuration.port and not signed_by_cluster:
        pair.begin()
    return pair
