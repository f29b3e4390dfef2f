"""Jitter: periods are stretched at random so that many pods do not wake at the same moment."""

from __future__ import annotations

import random
from collections.abc import Callable


def jittered(seconds: float, share: float = 0.5, *, draw: Callable[[], float] = random.random) -> float:
    """`seconds` plus a random part of up to `share` of it. `draw` gives numbers in [0, 1)."""
    return seconds + seconds * share * draw()
