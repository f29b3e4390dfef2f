"""Troubles that are made for real, and the sentences that `glasslet why` finds for them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.troubles.table import Trouble

FILES = (
    "images",
    "pulls",
    "containers",
    "volumes",
    "rejections",
    "objects",
    "manifests",
    "starts",
    "api_servers",
    "runtime",
    "places",
    "csi",
    "pressure",
    "hosts",
)


def areas() -> list[tuple[str, tuple[Trouble, ...]]]:
    """Every area with its troubles, in the order of the page."""
    found = []
    for name in FILES:
        module = importlib.import_module(f"tests.troubles.test_{name}")
        parts = (getattr(module, part, ()) for part in ("TROUBLES", "LATER", "DELETED", "TOKENS"))
        found.append((module.AREA, tuple(trouble for part in parts for trouble in part)))
    return found
