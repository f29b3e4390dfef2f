"""The kubeconfig that bootstrapping leaves behind, and whether one that is there is still good for anything."""

from __future__ import annotations

import base64
import os
from datetime import datetime
from typing import Any

import yaml
from msgspec import Struct

from glasslet.host.files.small_files import make_directory, write_atomically
from glasslet.identity.certificate import BadCertificate, read_certificates
from glasslet.kubeapi.kubeconfig import Kubeconfig, KubeconfigError, load_kubeconfig


class KubeconfigCertificate(Struct, frozen=True, kw_only=True):
    """The client certificate of a kubeconfig: when the first of its chain expires, and what is wrong with it."""

    expires: datetime | None = None
    problem: str = ""


def client_certificate(path: str, now: datetime) -> KubeconfigCertificate:
    """Reads the client certificate of a kubeconfig. No `problem` means: usable. Raises OSError if it cannot be read
    whether the kubeconfig is there."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return KubeconfigCertificate(problem=f"{path} does not exist")
    try:
        config = load_kubeconfig(path)
        if config.ca_file:
            _read(config.ca_file)
        data = config.certificate_data or (_read(config.certificate_file) if config.certificate_file else b"")
        if not data:
            return KubeconfigCertificate(problem=f"{path} has no client certificate")
        if not (config.key_data or (config.key_file and _read(config.key_file))):
            return KubeconfigCertificate(problem=f"{path} has no client key")
        expires = min(one.not_after for one in read_certificates(data))
    except KubeconfigError as error:
        return KubeconfigCertificate(problem=str(error))
    except (OSError, BadCertificate) as error:
        return KubeconfigCertificate(problem=f"{path}: {error}")
    if now > expires:
        return KubeconfigCertificate(
            expires=expires, problem=f"{path}: the client certificate expired at {expires:%FT%TZ}"
        )
    return KubeconfigCertificate(expires=expires)


def resulting_config(bootstrap: Kubeconfig, path: str, pair_file: str) -> Kubeconfig:
    """The kubeconfig at `path` that bootstrapping leads to: the same server, the certificate and key at `pair_file`."""
    return Kubeconfig(
        origin=os.path.abspath(path),
        server=bootstrap.server,
        tls_server_name=bootstrap.tls_server_name,
        insecure=bootstrap.insecure,
        ca_file=bootstrap.ca_file,
        ca_data=bootstrap.ca_data,
        proxy_url=bootstrap.proxy_url,
        certificate_file=pair_file,
        key_file=pair_file,
    )


def write_kubeconfig(config: Kubeconfig) -> None:
    """Writes what `resulting_config` made. Names of cluster, user and context are the Go kubelet's; mode 0600.

    Raises OSError."""
    cluster: dict[str, Any] = {"server": config.server}
    if config.insecure:
        cluster["insecure-skip-tls-verify"] = True
    if config.ca_file:
        cluster["certificate-authority"] = config.ca_file
    elif config.ca_data:
        cluster["certificate-authority-data"] = base64.b64encode(config.ca_data).decode()
    if config.tls_server_name:
        cluster["tls-server-name"] = config.tls_server_name
    if config.proxy_url:
        cluster["proxy-url"] = config.proxy_url
    user = {"client-certificate": config.certificate_file, "client-key": config.key_file}
    context = {"cluster": "default-cluster", "namespace": "default", "user": "default-auth"}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default-cluster", "cluster": cluster}],
        "contexts": [{"name": "default-context", "context": context}],
        "current-context": "default-context",
        "users": [{"name": "default-auth", "user": user}],
    }
    make_directory(os.path.dirname(config.origin), 0o755)
    write_atomically(config.origin, yaml.safe_dump(document, default_flow_style=False).encode(), mode=0o600)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
