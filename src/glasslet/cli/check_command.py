"""`glasslet check`: flags, configuration and machine before a start."""

from __future__ import annotations

import os
import sys

import click


@click.command("check", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Check flags, configuration file, drop-ins and machine: every problem at once, each with its origin.

    ARGUMENTS: --effective (print the merged configuration), -o json|text, then the flags of the agent.
    """
    # The agent's own code checks: this tool knows nothing of configuration.
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "glasslet.kubelet", "check", *arguments])  # noqa: S606
