"""`glasslet check`: pod manifests, or flags, configuration and machine, before a start."""

from __future__ import annotations

import os
import sys

import click


@click.command("check", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", metavar="[FILE]...|[FLAG]...", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Check pod manifests; or flags, configuration file, drop-ins and machine: every problem at once, with its place.

    FILE is a manifest, a folder of manifests, or - for standard input. Types, values, names, image names and unknown
    fields are checked, each with line, field and what is allowed; no agent is needed.

    Without FILE: --effective (print the merged configuration), then the flags of the agent. Both take -o json|text.
    --replace: what of this node would behave differently with glasslet than with the Go kubelet that runs here, or has
    the flags that follow: settings, unit, checkpoints, volumes, control groups, runtime. Nothing is changed.

    Exit code 1 if there is a problem, or something to mend before a replacement.
    """
    # The agent's own code checks: this tool knows nothing of configuration and pods.
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "glasslet.kubelet", "check", *arguments])  # noqa: S606
