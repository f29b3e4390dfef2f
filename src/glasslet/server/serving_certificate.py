"""Which certificate to serve with: the configured one, else kubelet.crt and kubelet.key, made if they are not there."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from glasslet.server.tls import BadTLSFile


class ServingPair:
    """Paths of certificate and key (behaviours.md §28). `certificate` and `key` as configured, "" when they are not.

    Making a pair takes a process and a quarter of a second: who begins it early has it in time."""

    def __init__(self, *, certificate: str, key: str, cert_dir: str, host: str) -> None:
        self._configured = certificate, key
        self._cert_dir = cert_dir
        self._host = host
        self._maker: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Starts to make the pair where it is needed; does not wait.

        Raises BadTLSFile when only one of the two is there, or none can be made."""
        if not any(self._configured) and not _is_there(*self._own()):
            try:
                os.makedirs(self._cert_dir, mode=0o755, exist_ok=True)
            except OSError as error:
                raise BadTLSFile(f"certificate directory {self._cert_dir}: {error.strerror}") from error
            self._maker = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "glasslet.server.self_signed", *self._own(), self._host],
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

    def _own(self) -> tuple[str, str]:
        return os.path.join(self._cert_dir, "kubelet.crt"), os.path.join(self._cert_dir, "kubelet.key")

    async def _made(self, maker: subprocess.Popen[bytes]) -> None:
        try:
            _, said = await asyncio.to_thread(maker.communicate)
        except asyncio.CancelledError:
            maker.kill()  # its end ends the thread
            raise
        if maker.returncode != 0:
            last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise BadTLSFile(f"self-signed certificate {self._own()[0]}: {last}")


def _is_there(certificate: str, key: str) -> bool:
    """Whether both are; raises BadTLSFile for one alone."""
    readable = [os.access(path, os.R_OK) for path in (certificate, key)]
    if any(readable) and not all(readable):
        there, missing = (certificate, key) if readable[0] else (key, certificate)
        raise BadTLSFile(f"{there} is there but {missing} is not readable: both are needed, or none to make a new pair")
    return all(readable)
