"""Recorded machines: a file of tests/data/machines has a line for each file of /sys, its path and its content."""

from __future__ import annotations

from pathlib import Path

MACHINES = Path(__file__).resolve().parents[1] / "data" / "machines"


def recorded_machine(name: str, folder: Path) -> str:
    """Makes the machine's tree in `folder`. Returns it as a root."""
    for line in (MACHINES / f"{name}.txt").read_text("ascii").splitlines():
        if line.startswith("#"):
            continue
        path, _, content = line.partition("\t")
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n", "ascii")
    return str(folder)
