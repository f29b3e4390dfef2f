"""Tables of the Go kubelet's own answers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parents[2] / "data" / "managers"


def table(name: str) -> list[dict[str, Any]]:
    """The cases of one table. GLASSLET_TEST_TABLES names a folder with larger ones."""
    folder = Path(os.environ.get("GLASSLET_TEST_TABLES") or _FOLDER)
    found: list[dict[str, Any]] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return found
