"""Which certificate to serve with: the configured one, else kubelet.crt and kubelet.key, made if they are not there."""

from __future__ import annotations

import asyncio
import os
import sys

from glasslet.server.tls import BadTLSFile


async def serving_pair(*, certificate: str, key: str, cert_dir: str, host: str) -> tuple[str, str]:
    """Paths of certificate and key (behaviours.md §28). `certificate` and `key` as configured, "" when they are not.

    Raises BadTLSFile when only one of the two is there, or none can be made."""
    if certificate or key:
        if not (certificate and key):
            missing = "tlsPrivateKeyFile" if certificate else "tlsCertFile"
            raise BadTLSFile(f'{missing} "": it has to be set together with the other file of the pair')
        return certificate, key
    certificate, key = os.path.join(cert_dir, "kubelet.crt"), os.path.join(cert_dir, "kubelet.key")
    readable = [os.access(path, os.R_OK) for path in (certificate, key)]
    if all(readable):
        return certificate, key
    if any(readable):
        there, missing = (certificate, key) if readable[0] else (key, certificate)
        raise BadTLSFile(f"{there} is there but {missing} is not readable: both are needed, or none to make a new pair")
    try:
        os.makedirs(cert_dir, mode=0o755, exist_ok=True)
    except OSError as error:
        raise BadTLSFile(f"certificate directory {cert_dir}: {error.strerror}") from error
    await _make(certificate, key, host)
    return certificate, key


async def _make(certificate: str, key: str, host: str) -> None:
    maker = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "glasslet.server.self_signed",
        certificate,
        key,
        host,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, said = await maker.communicate()
    except asyncio.CancelledError:
        maker.kill()
        await maker.wait()
        raise
    if maker.returncode != 0:
        last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise BadTLSFile(f"self-signed certificate {certificate}: {last}")
