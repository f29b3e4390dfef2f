"""One frozen value in one checked file. A file that is damaged or of another version is a finding.

file = StateFile(path=..., kind=State, version=1, what="probe results", finding=recorder.finding)
state = file.read()          # None: nothing there, or nothing to be trusted
file.write(state)            # blocking; raises OSError
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from glasslet.api.codec import DecodeError, decode, encode
from glasslet.host.files.small_files import Damaged, Intact, move_aside, read_checked, write_checked


class Versioned(Protocol):
    """A state with the version of its form."""

    @property
    def version(self) -> int: ...


T = TypeVar("T", bound=Versioned)


class StateFile(Generic[T]):
    """`what` names the content in words, in the plural. A damaged file is moved aside and costs its content only."""

    def __init__(self, *, path: str, kind: type[T], version: int, what: str, finding: Callable[[str], None]) -> None:
        self.path = path
        self._kind = kind
        self._version = version
        self._what = what
        self._finding = finding

    def read(self) -> T | None:
        """Returns the value that was written last, None without one that can be trusted."""
        try:
            found = read_checked(self.path)
        except OSError as error:
            self._finding(f"{self._what} cannot be read from {self.path}: {error.strerror}")
            return None
        if isinstance(found, Damaged):
            return self._lost(found.why)
        if not isinstance(found, Intact):
            return None
        try:
            state = decode(found.data, self._kind)
        except DecodeError as error:
            return self._lost(f"{self.path}: {error}; {move_aside(self.path)}")
        if state.version != self._version:
            why = f"{self.path} has version {state.version}, want {self._version}"
            return self._lost(f"{why}; {move_aside(self.path)}")
        return state

    def write(self, state: T) -> None:
        """Replaces the file. Raises OSError."""
        write_checked(self.path, encode(state))

    def _lost(self, why: str) -> T | None:
        self._finding(f"{self._what} of the last run are lost: {why}")
        return None
