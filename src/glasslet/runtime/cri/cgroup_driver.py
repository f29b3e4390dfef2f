"""Reads the runtime's cgroup driver, with retries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from glasslet.runtime.errors import RuntimeCallError

_TRIES = 3


class DriverSource(Protocol):
    """The part of `CRIRuntime` that is used here."""

    async def cgroup_driver(self) -> str: ...


async def ask_cgroup_driver(runtime: DriverSource, *, not_implemented: Callable[[], None]) -> str | None:
    """The runtime's driver; None, after a call of `not_implemented`, for a runtime without that CRI verb. Raises
    RuntimeCallError after three failures."""
    for left in reversed(range(_TRIES)):
        try:
            return await runtime.cgroup_driver()
        except RuntimeCallError as error:
            if error.code == "UNIMPLEMENTED":
                not_implemented()
                return None
            if not left:
                raise
    raise AssertionError("unreachable")
