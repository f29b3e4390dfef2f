"""What the node is told once at the start about volumes in memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from glasslet.assembly.memory_volumes import tell_swapped_volumes


# behaviours.md §16: "with swap on and no such support: node event PossibleMemoryBackedVolumesOnDisk at start."
@pytest.mark.parametrize(
    ("swap", "kept", "reasons"),
    [(0, False, []), (1 << 30, True, []), (1 << 30, False, ["PossibleMemoryBackedVolumesOnDisk"])],
)
def test_a_node_that_may_swap_secrets_says_so(tmp_path: Path, swap: int, kept: bool, reasons: list[str]) -> None:
    told: list[tuple[str, str, str]] = []
    foundation: Any = SimpleNamespace(
        machine=SimpleNamespace(swap_capacity=swap),
        root=SimpleNamespace(root_dir=str(tmp_path)),
        events=SimpleNamespace(node=lambda *event: told.append(event)),
    )
    tell_swapped_volumes(foundation, lambda folder: kept)
    assert [reason for _, reason, _ in told] == reasons
    assert list(tmp_path.iterdir()) == []
