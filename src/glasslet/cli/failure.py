"""Failures that end a command: one line for people, one exit code for scripts."""

from __future__ import annotations

import click


class Failure(click.ClickException):
    """Ends the command with one line on standard error and exit code 1."""

    exit_code = 1

    def show(self, file: object = None) -> None:
        """`error: ...`"""
        click.echo(f"error: {self.message}", err=True)


class AgentNotRunning(Failure):
    """No agent answers at the socket."""

    exit_code = 3

    def __init__(self, socket: str, why: str) -> None:
        super().__init__(
            f"no agent answers at {socket} ({why}); start one with `glasslet up PATH`, "
            "or name another root folder with --root-dir"
        )


class NotInRecord(Failure):
    """No agent runs, and the record on disk does not have the pod."""

    exit_code = 3


class NotInTime(Failure):
    """The time limit passed first."""

    exit_code = 4
