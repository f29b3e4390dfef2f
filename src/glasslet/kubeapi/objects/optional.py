"""Objects that need not exist."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from glasslet.kubeapi.errors import NotFound

T = TypeVar("T")


async def if_it_exists(reading: Awaitable[T], *, optional: bool) -> T | None:
    """The result of the read; None if the object is optional and does not exist. Raises APIError."""
    try:
        return await reading
    except NotFound:
        if optional:
            return None
        raise
