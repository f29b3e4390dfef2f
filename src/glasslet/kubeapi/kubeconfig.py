"""kubeconfig files: the server, its CA, and the credentials of the agent (client-go's clientcmd v1 format).

Relative paths in the file are relative to the file. The file may be trusted, but is read strictly enough to say what is
wrong with it in one sentence.
"""

from __future__ import annotations

import base64
import binascii
import os
from typing import Any

from msgspec import Struct, field

from glasslet.api.codec import DecodeError, convert
from glasslet.api.object import Object
from glasslet.config.document import DocumentError
from glasslet.config.documents import load_file


class KubeconfigError(Exception):
    """A kubeconfig cannot be used; the text names file, field and what is wanted."""


class ExecEnv(Object, frozen=True, kw_only=True):
    """One environment variable of a credential plugin."""

    name: str = ""
    value: str = ""

    def __repr__(self) -> str:
        return f"ExecEnv(name={self.name!r})"


class ExecPlugin(Object, frozen=True, kw_only=True):
    """`users[].user.exec`: a program that prints an ExecCredential (client.authentication.k8s.io/v1)."""

    api_version: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecEnv, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class _Cluster(Object, frozen=True, kw_only=True):
    server: str = ""
    tls_server_name: str = field(default="", name="tls-server-name")
    insecure: bool = field(default=False, name="insecure-skip-tls-verify")
    ca_file: str = field(default="", name="certificate-authority")
    ca_data: str = field(default="", name="certificate-authority-data")
    proxy_url: str = field(default="", name="proxy-url")
    disable_compression: bool = field(default=False, name="disable-compression")


class _User(Object, frozen=True, kw_only=True):
    client_certificate: str = field(default="", name="client-certificate")
    client_certificate_data: str = field(default="", name="client-certificate-data")
    client_key: str = field(default="", name="client-key")
    client_key_data: str = field(default="", name="client-key-data")
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    as_user: str = field(default="", name="as")
    as_uid: str = field(default="", name="as-uid")
    as_groups: tuple[str, ...] = field(default=(), name="as-groups")
    exec: ExecPlugin | None = None

    def __repr__(self) -> str:
        return f"_User(exec={self.exec!r})"


class _Context(Object, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(Object, frozen=True, kw_only=True):
    name: str = ""
    cluster: _Cluster = _Cluster()


class _NamedUser(Object, frozen=True, kw_only=True):
    name: str = ""
    user: _User = _User()


class _NamedContext(Object, frozen=True, kw_only=True):
    name: str = ""
    context: _Context = _Context()


class _File(Object, frozen=True, kw_only=True):
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()
    current_context: str = field(default="", name="current-context")


class Kubeconfig(Struct, frozen=True, kw_only=True):
    """A kubeconfig's current context, resolved. Files are absolute paths; `*_data` is PEM. `repr` hides secrets."""

    origin: str
    server: str
    tls_server_name: str = ""
    insecure: bool = False
    ca_file: str = ""
    ca_data: bytes = b""
    proxy_url: str = ""
    certificate_file: str = ""
    certificate_data: bytes = b""
    key_file: str = ""
    key_data: bytes = b""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    impersonate: tuple[tuple[str, str], ...] = ()
    exec: ExecPlugin | None = None
    pair_file: str = ""
    """Certificate and key in one file, kept by certificate rotation: counts instead of all other credentials once it is
    there."""

    def __repr__(self) -> str:
        return f"Kubeconfig(origin={self.origin!r}, server={self.server!r})"


def load_kubeconfig(path: str) -> Kubeconfig:
    """Reads a kubeconfig. Raises KubeconfigError."""
    try:
        documents = load_file(path)
    except DocumentError as error:
        raise KubeconfigError(f"kubeconfig {error}") from None
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise KubeconfigError(f"kubeconfig {path}: want one document of kind Config")
    try:
        parsed = convert(documents[0].value, _File)
    except DecodeError as error:
        raise KubeconfigError(f"kubeconfig {path}: {error}") from None
    return _resolve(os.path.abspath(path), parsed)


def _resolve(path: str, parsed: _File) -> Kubeconfig:
    context: _Context = _named(path, "contexts", parsed.current_context, {c.name: c.context for c in parsed.contexts})
    cluster: _Cluster = _named(path, "clusters", context.cluster, {c.name: c.cluster for c in parsed.clusters})
    user: _User = (
        _named(path, "users", context.user, {u.name: u.user for u in parsed.users}) if context.user else _User()
    )
    if not cluster.server.startswith(("https://", "http://")):
        raise KubeconfigError(
            f"kubeconfig {path}: cluster {context.cluster!r} has server {cluster.server!r}: want an https URL"
        )
    if cluster.insecure and (cluster.ca_file or cluster.ca_data):
        raise KubeconfigError(
            f"kubeconfig {path}: a certificate authority and insecure-skip-tls-verify exclude each other"
        )
    folder = os.path.dirname(path)
    return Kubeconfig(
        origin=path,
        server=cluster.server.rstrip("/"),
        tls_server_name=cluster.tls_server_name,
        insecure=cluster.insecure,
        ca_file=_absolute(folder, cluster.ca_file) if not cluster.ca_data else "",
        ca_data=_pem(path, "certificate-authority-data", cluster.ca_data),
        proxy_url=cluster.proxy_url,
        certificate_file=_absolute(folder, user.client_certificate) if not user.client_certificate_data else "",
        certificate_data=_pem(path, "client-certificate-data", user.client_certificate_data),
        key_file=_absolute(folder, user.client_key) if not user.client_key_data else "",
        key_data=_pem(path, "client-key-data", user.client_key_data),
        token=user.token if not user.token_file else "",
        token_file=_absolute(folder, user.token_file),
        username=user.username,
        password=user.password,
        impersonate=_impersonation(user),
        exec=user.exec,
    )


def _named(path: str, section: str, name: str, entries: dict[str, Any]) -> Any:
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        if not name:
            # Most often an empty file, or one that was only begun.
            raise KubeconfigError(f"kubeconfig {path} names none of its {section} (there: {known})")
        raise KubeconfigError(f"kubeconfig {path}: {section} has no entry {name!r} (there: {known})")
    return entries[name]


def _absolute(folder: str, file: str) -> str:
    return os.path.normpath(os.path.join(folder, file)) if file else ""


def _pem(path: str, name: str, data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise KubeconfigError(f"kubeconfig {path}: {name} is not base64") from None


def _impersonation(user: _User) -> tuple[tuple[str, str], ...]:
    headers = [("Impersonate-User", user.as_user), ("Impersonate-Uid", user.as_uid)]
    headers += [("Impersonate-Group", group) for group in user.as_groups]
    return tuple((name, value) for name, value in headers if value)
