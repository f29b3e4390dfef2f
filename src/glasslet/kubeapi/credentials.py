"""Credentials of the agent: client certificate, token, token file, or a credential plugin.

Files are read again when they change (bound tokens and rotated certificates do); they are checked once a second at
most. A plugin's answer is kept until it expires or the server refuses it. No secret is logged.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
from collections.abc import Callable
from datetime import datetime

import msgspec
from msgspec import Struct

from glasslet.api.codec import decode
from glasslet.api.object import Object
from glasslet.concurrency.child_process import end, read_bounded
from glasslet.concurrency.clock import Clock
from glasslet.kubeapi.kubeconfig import ExecPlugin, Kubeconfig

_PLUGIN_SECONDS = 60.0
_LONGEST_ANSWER = 1 << 20
_LOOK_AGAIN = 1.0
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class CredentialError(Exception):
    """No usable credentials; the text says which file or plugin and what to do, never the secret."""


class _ExecStatus(Object, frozen=True, kw_only=True):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None

    def __repr__(self) -> str:
        return f"_ExecStatus(expiration_timestamp={self.expiration_timestamp})"


class _ExecCredential(Object, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


class Identity(Struct, frozen=True, kw_only=True):
    """The credentials of a connection. Equal identities may share connections."""

    certificate: bytes = b""
    key: bytes = b""
    token: str = ""

    def __repr__(self) -> str:
        return f"Identity(certificate={bool(self.certificate)}, token={bool(self.token)})"


class Credentials:
    """The current identity of one kubeconfig user."""

    def __init__(self, *, config: Kubeconfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._identity = Identity()
        self._looked_at = float("-inf")
        self._stamps: tuple[tuple[int, int], ...] = ()
        self._expires: datetime | None = None
        self._plugin_lock = asyncio.Lock()

    async def current(self) -> Identity:
        """The identity to use now. Raises CredentialError."""
        if self._config.exec is not None and not self._pair_file():
            return await self._from_plugin(self._config.exec)
        if self._clock.monotonic() - self._looked_at >= _LOOK_AGAIN:
            self._look_at_files()
        return self._identity

    def refused(self) -> None:
        """Drops the kept credentials: the server answered 401."""
        self._looked_at = float("-inf")
        self._stamps = ()
        self._expires = None
        if self._config.exec is not None:
            self._identity = Identity()

    def _pair_file(self) -> str:
        """The path of the pair from certificate rotation, if it exists."""
        path = self._config.pair_file
        return path if path and os.path.exists(path) else ""

    def _look_at_files(self) -> None:
        config = self._config
        self._looked_at = self._clock.monotonic()
        if pair := self._pair_file():
            stamp = _stamp(pair)
            if self._stamps != (stamp,):
                data = _read(pair)
                self._identity, self._stamps = Identity(certificate=data, key=data), (stamp,)
            return
        files = [f for f in (config.certificate_file, config.key_file, config.token_file) if f]
        stamps = tuple(_stamp(f) for f in files)
        if stamps == self._stamps and self._identity != Identity():
            return
        identity = Identity(
            certificate=_read(config.certificate_file) if config.certificate_file else config.certificate_data,
            key=_read(config.key_file) if config.key_file else config.key_data,
            token=_read(config.token_file).decode("latin-1").strip() if config.token_file else config.token,
        )
        self._identity, self._stamps = identity, stamps

    async def _from_plugin(self, plugin: ExecPlugin) -> Identity:
        async with self._plugin_lock:
            valid = self._expires is None or self._clock.now() < self._expires
            if self._identity == Identity() or not valid:
                status = await run_plugin(plugin, self._config)
                self._expires = status.expiration_timestamp
                self._identity = Identity(
                    certificate=status.client_certificate_data.encode(),
                    key=status.client_key_data.encode(),
                    token=status.token,
                )
            return self._identity


async def run_plugin(plugin: ExecPlugin, config: Kubeconfig) -> _ExecStatus:
    """Runs a credential plugin (`client.authentication.k8s.io`). Raises CredentialError."""
    if plugin.api_version not in _VERSIONS:
        raise CredentialError(
            f"credential plugin {plugin.command}: apiVersion {plugin.api_version!r}, want {_VERSIONS[0]}"
        )
    env = {**os.environ, **{e.name: e.value for e in plugin.env}, "KUBERNETES_EXEC_INFO": _exec_info(plugin, config)}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command, *plugin.args, env=env, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
    except OSError as error:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        raise CredentialError(f"credential plugin {plugin.command} cannot be run: {error.strerror}{hint}") from error
    try:
        async with asyncio.timeout(_PLUGIN_SECONDS):
            assert process.stdout is not None
            output = await read_bounded(process.stdout, _LONGEST_ANSWER + 1)
            await process.wait()
    except TimeoutError:
        raise CredentialError(f"credential plugin {plugin.command} gave no answer in {_PLUGIN_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            await end(process)
    if process.returncode != 0:
        raise CredentialError(f"credential plugin {plugin.command} ended with exit code {process.returncode}")
    if len(output) > _LONGEST_ANSWER:
        raise CredentialError(f"credential plugin {plugin.command} printed more than {_LONGEST_ANSWER} bytes")
    try:
        answer = decode(output, _ExecCredential)
    except msgspec.DecodeError:
        raise CredentialError(f"credential plugin {plugin.command} printed no ExecCredential") from None
    if answer.status is None or not (answer.status.token or answer.status.client_certificate_data):
        raise CredentialError(f"credential plugin {plugin.command} gave neither a token nor a certificate")
    return answer.status


def _exec_info(plugin: ExecPlugin, config: Kubeconfig) -> str:
    spec: dict[str, object] = {"interactive": False}
    if plugin.provide_cluster_info:
        ca = config.ca_data or (_read(config.ca_file) if config.ca_file else b"")
        spec["cluster"] = {
            "server": config.server,
            "tls-server-name": config.tls_server_name,
            "insecure-skip-tls-verify": config.insecure,
            "certificate-authority-data": base64.b64encode(ca).decode(),
            "proxy-url": config.proxy_url,
        }
    return json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})


def tls_context(config: Kubeconfig, identity: Identity, memory_file: Callable[[bytes], str]) -> ssl.SSLContext:
    """TLS towards the server. `memory_file` gives a path at which OpenSSL can read bytes (it takes no bytes itself)."""
    context = ssl.create_default_context(cafile=config.ca_file or None, cadata=config.ca_data.decode() or None)
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity.certificate:
        context.load_cert_chain(memory_file(identity.certificate), memory_file(identity.key or identity.certificate))
    return context


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError as error:
        raise CredentialError(f"{path}: {error.strerror}") from error
    return status.st_mtime_ns, status.st_ino


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise CredentialError(f"{path}: {error.strerror}") from error
