"""Manifest texts and files with quiet defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from glasslet.config.documents import load_documents
from glasslet.sources.manifest import ManifestReader

NODE = "node-1"
READER = ManifestReader(node_name=NODE)


def manifest(name: str = "web", **spec: Any) -> dict[str, Any]:
    """A valid manifest of one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "busybox:1.36"}], **spec},
    }


def text_of(value: Any) -> str:
    """The value as YAML."""
    return yaml.safe_dump(value)


def document(value: Any, origin: str = "/manifests/web.yaml") -> Any:
    """The value as a loaded document."""
    return load_documents(text_of(value).encode(), origin=origin)[0]


def write(folder: Path, name: str = "web", *, file: str = "", **spec: Any) -> Path:
    """Writes a manifest to `<name>.yaml` (or `file`)."""
    path = folder / (file or f"{name}.yaml")
    path.write_text(text_of(manifest(name, **spec)))
    return path
