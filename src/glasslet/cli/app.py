"""The command itself: global options, and its subcommands, each imported when it is called."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

COMMANDS = {
    "up": "Run pods from manifests on this machine.",
    "down": "Remove the pods that `up` runs, and what it started.",
    "ps": "Pods, and what each is doing now.",
    "describe": "One pod in full.",
    "trace": "One pod's way, millisecond by millisecond.",
    "why": "Why a pod is as it is: a verdict with evidence.",
    "waits": "Everything that is being waited for.",
    "tasks": "Every task of the agent, and whom it serves.",
    "logs": "The log of a container.",
    "exec": "Run a command in a container.",
    "check": "Check flags, configuration and machine before a start.",
    "version": "The versions of this tool and of the agent.",
}


class Commands(click.Group):
    """Subcommands by name; a wrong name is answered with the nearest."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command's module."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"glasslet.cli.{cmd_name}_command").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with a better answer to a wrong name."""
        if args and args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command {args[0]}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help text, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--root-dir",
    envvar="GLASSLET_ROOT",
    type=click.Path(path_type=Path),
    help="The agent's root folder, which holds its socket; else GLASSLET_ROOT, else the usual places.",
)
@click.pass_context
def glasslet(ctx: click.Context, root_dir: Path | None) -> None:
    """The kubelet that you can see through."""
    ctx.obj = root_dir


def main() -> None:
    """Entry point. Exit codes: 1 refused, 2 wrong usage, 3 no agent, 4 not in time; `exec` gives the command's own."""
    try:
        glasslet(prog_name="glasslet")
    except BrokenPipeError:
        # The reader has gone (`| head`); the interpreter must not complain about it while it ends.
        sys.stderr.close()
        sys.exit(141)
