"""What containers of the fake runtime do: scripts for their main process, for commands inside them, for pulls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command run inside a container: what it writes, how it ends, and after how many seconds."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    takes: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Program:
    """The main process of a container. Without `exit_after` (seconds) it runs until it is stopped.

    On TERM it ends after `term_takes` seconds with `term_code`, unless it `ignores_term`; KILL ends it at once (137).
    `commands`: what commands run inside it do, by the command line joined with blanks; others end at once with 0.
    `start_error`: the runtime cannot start it (no such executable): StartContainer fails with these words, code 128.
    """

    exit_after: float | None = None
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    ignores_term: bool = False
    term_takes: float = 0.0
    term_code: int = 143
    output: tuple[str, ...] = ()
    commands: Mapping[str, Command] = field(default_factory=dict)
    start_error: str = ""


@dataclass(frozen=True, kw_only=True)
class Pull:
    """What pulling an image does: takes so many seconds, then succeeds, or fails with `error` and its CRI `reason`."""

    takes: float = 0.0
    error: str = ""
    reason: str = ""


RUNS_FOREVER = Program()
IGNORES_TERM = Program(ignores_term=True)


def exits(code: int = 0, *, after: float = 0.0) -> Program:
    """A program that ends by itself."""
    return Program(exit_after=after, exit_code=code)
