"""How much is logged: the `-v` level, and exceptions by source file (`--vmodule`).

The scale is the Go kubelet's: 0 is what an operator always wants, 2 the steady state, 4 debugging, 6 and above traces.
Python's levels sit on it: INFO and above are always shown, DEBUG from 4, anything below DEBUG from 6.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from fnmatch import fnmatchcase

DEBUG_FROM = 4
TRACE_FROM = 6
TRACE = 5
"""Level of the finest messages: `logger.log(TRACE, ...)`."""
MAX_VERBOSITY = 2147483647

FOREIGN_QUIET = ("asyncio", "aiohttp", "grpc", "concurrent", "urllib3")
"""Libraries whose INFO and DEBUG lines are shown only when traces are."""


def threshold(verbosity: int) -> int:
    """The lowest Python level that is shown at this verbosity."""
    if verbosity >= TRACE_FROM:
        return TRACE
    return logging.DEBUG if verbosity >= DEBUG_FROM else logging.INFO


class VerbosityFilter(logging.Filter):
    """Decides per source file; the answer is kept per file, as patterns are slow to match."""

    def __init__(self, verbosity: int, modules: Mapping[str, int]) -> None:
        super().__init__()
        self.verbosity = verbosity
        self._modules = dict(modules)
        self._by_file: dict[str, int] = {}

    def set_verbosity(self, verbosity: int) -> None:
        """Changes the general level; the exceptions stay."""
        self.verbosity = verbosity
        self._by_file.clear()

    def lowest(self) -> int:
        """The lowest level that any file may show: what loggers have to let through."""
        return min(threshold(v) for v in (self.verbosity, *self._modules.values()))

    def filter(self, record: logging.LogRecord) -> bool:
        """True if the record is to be shown."""
        if record.name.split(".", 1)[0] in FOREIGN_QUIET and self.verbosity < TRACE_FROM:
            return record.levelno >= logging.WARNING
        if record.levelno >= logging.INFO:
            return True
        lowest = self._by_file.get(record.pathname)
        if lowest is None:
            lowest = self._by_file[record.pathname] = threshold(self._verbosity_of(record.pathname))
        return record.levelno >= lowest

    def _verbosity_of(self, path: str) -> int:
        """As klog matches: the first pattern wins; with a slash it sees the whole path, else the file's bare name."""
        path = path.removesuffix(".py")
        name = path.rsplit("/", 1)[-1]
        for pattern, verbosity in self._modules.items():
            if fnmatchcase(path if "/" in pattern else name, pattern):
                return verbosity
        return self.verbosity
