"""The import contracts of pyproject.toml are complete."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OF_THE_COMMAND_LINE = {"answers", "cli", "version"}
"""All that `glasslet.cli` may import of this program."""


def modules() -> set[str]:
    """Packages and modules directly below `glasslet`."""
    entries = [entry for entry in (ROOT / "src" / "glasslet").iterdir() if not entry.name.startswith("_")]
    return {entry.stem for entry in entries if entry.suffix == ".py" or (entry / "__init__.py").is_file()}


def contract(kind: str) -> dict[str, Any]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    found: dict[str, Any] = next(one for one in contracts if one["type"] == kind)
    return found


def test_the_command_line_may_import_a_module_or_is_forbidden_to() -> None:
    forbidden = {name.removeprefix("glasslet.") for name in contract("forbidden")["forbidden_modules"]}
    assert forbidden == modules() - OF_THE_COMMAND_LINE


def test_every_module_has_a_layer() -> None:
    layers = " | ".join(contract("layers")["layers"])
    assert modules() - {name.strip(" ()") for name in layers.split("|")} == set()
