"""Configuration files for tests."""

from __future__ import annotations

from pathlib import Path

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STANDALONE = "authentication: {webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}\n"
"""What a file needs so that a start without an API server has no problem."""


def write(path: Path, body: str, *, head: str = HEAD) -> str:
    """Writes a configuration file; the path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + body)
    return str(path)
