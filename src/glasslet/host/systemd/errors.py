"""Errors of calls over the system bus, apart from the bus itself, which most nodes never load.

BusFailed           OSError: the call did not succeed
├── BusAway         no answer in time, or no connection: a later call may succeed
└── BusRefused      the answer is an error; `name` is that of D-Bus
"""

from __future__ import annotations

import errno


class BusFailed(OSError):
    """A call over the system bus did not succeed."""


class BusAway(BusFailed):
    """The system bus, or the service behind it, does not answer."""

    def __init__(self, text: str) -> None:
        super().__init__(errno.ETIMEDOUT, text)


class BusRefused(BusFailed):
    """The service answered with an error."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(errno.EPROTO, f"{text} ({name})")
        self.name = name
