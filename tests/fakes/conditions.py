"""Conditions of breaks without a process: for tests in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from glasslet.stops.conditions import ConditionFailed, ConditionTooSlow

Rule = Callable[[Mapping[str, Any]], bool]


class InlineConditions:
    """Conditions by their text. `slow` ones take as long as they may."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}
        self.slow: set[str] = set()
        self.seen: list[Mapping[str, Any]] = []
        self.idled = 0

    async def check(self, condition: str) -> None:
        """Every text is a condition."""

    async def holds(self, condition: str, tree: Mapping[str, object]) -> bool:
        if condition in self.slow:
            await asyncio.sleep(0.5)
            raise ConditionTooSlow("the condition took longer than 0.5 s")
        self.seen.append(tree)
        try:
            return self.rules[condition](tree)
        except KeyError as error:
            raise ConditionFailed(f"no such field {error}") from error

    def idle(self) -> None:
        self.idled += 1
