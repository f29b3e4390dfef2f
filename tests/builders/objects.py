"""Objects that pods take their data from, as plain values for a fake API server."""

from __future__ import annotations

import base64
from typing import Any


def secret(name: str, *, namespace: str = "default", kind: str = "Opaque", **data: str | bytes) -> dict[str, Any]:
    """A Secret. Keys are given as arguments; `immutable` and names with dots go through `with_data`."""
    return with_data({"kind": "Secret", "type": kind, "metadata": {"name": name, "namespace": namespace}}, data)


def with_data(body: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """The Secret with these values, encoded."""
    raw = {key: text if isinstance(text, bytes) else text.encode() for key, text in data.items()}
    return {**body, "data": {key: base64.b64encode(content).decode() for key, content in raw.items()}}


def config_map(name: str, *, namespace: str = "default", **data: str) -> dict[str, Any]:
    """A ConfigMap."""
    return {"kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def service(name: str, address: str, *ports: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    """A Service."""
    return {
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": address, "ports": list(ports or ({"port": 80, "protocol": "TCP"},))},
    }
