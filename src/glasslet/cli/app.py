"""The command: global options and subcommands, each imported when it is called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from glasslet.cli.agent_client import AgentClient, find_agent

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "up": "Run pods from manifests on this machine.",
    "down": "Remove the pods of `up`, its agent and its containerd.",
    "ps": "List the pods, and what each is doing now.",
    "describe": "Show one pod in full.",
    "trace": "Show one pod's start, millisecond by millisecond.",
    "calls": "Show what the agent's own code does for one pod, or did during its start.",
    "why": "Explain why a pod or the node is as it is, or list all troubles.",
    "break": "Hold pods at one place of their way.",
    "breaks": "List the breaks, and the pods that they hold.",
    "unbreak": "Remove breaks; their pods go on.",
    "inspect": "Show all that the agent knows of one pod now.",
    "step": "Let a held pod go on to the next place of its way.",
    "continue": "Let held pods go on.",
    "debug": "Step through one pod's way in a conversation.",
    "evict": "Show what eviction would do now, and which pods would go in which order.",
    "images": "List the images of the node, and which would be removed in which order.",
    "node": "Show sockets, NUMA nodes and cores of the node, and which container has which.",
    "volumes": "List the volumes on the node: pods, mounts, sizes, CSI drivers.",
    "waits": "List everything that pods and agent wait for now.",
    "report": "Write all that is known of one pod into one file to hand on, without secrets.",
    "tasks": "List the tasks of the agent, and the pod of each.",
    "logs": "Print the log of a container.",
    "exec": "Run a command in a container.",
    "web": "Open the page of the agent in a browser.",
    "check": "Check pod manifests, or flags, configuration and machine.",
    "completion": "Print the completion script for bash, zsh or fish.",
    "debugger": "Let a debugger attach to the running agent.",
    "version": "Print the versions of this tool and of the agent.",
}


_STOPS = ("break", "breaks", "unbreak", "inspect", "step", "continue", "debug")
_ROOMS = {
    "up": "standalone",
    "down": "standalone",
    "report": "report",
    "calls": "calls",
    **dict.fromkeys(_STOPS, "stops"),
}
"""The folders of commands that are not directly in this one."""


def load(name: str) -> click.Command:
    """Imports a command's module."""
    room = f"{_ROOMS[name]}." if name in _ROOMS else ""
    command: click.Command = importlib.import_module(f"glasslet.cli.{room}{name}_command").command
    return command


class Commands(click.Group):
    """Subcommands by name, each imported when it is called. For an unknown name the error suggests the nearest."""

    table: Mapping[str, str] = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which a newcomer needs them."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        return self.load(cmd_name) if cmd_name in self.table else None

    def load(self, name: str) -> click.Command:
        """A command of the table."""
        return load(name)

    def client(self, ctx: click.Context) -> AgentClient:
        """The agent that completion asks, from the options typed so far. Raises Failure."""
        return find_agent(ctx.find_root().params.get("root_dir"))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, with a suggestion for an unknown name."""
        if args and args[0] not in self.table and not ctx.resilient_parsing:
            import difflib

            near = difflib.get_close_matches(args[0], self.table, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(self.table)}"
            raise click.UsageError(f"no command {args[0]}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names, without importing any command; options only after a dash."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(name, help=text) for name, text in self.table.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help text, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.table.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--root-dir",
    metavar="FOLDER",
    envvar="GLASSLET_ROOT",
    type=click.Path(path_type=Path),
    help="The agent's root folder, which holds the socket. Default: GLASSLET_ROOT, else that of the agent that runs.",
)
@click.pass_context
def glasslet(ctx: click.Context, root_dir: Path | None) -> None:
    """The kubelet that explains itself.

    Exit codes: 1 refused, 2 wrong usage, 3 no agent answers, 4 not in time, 5 something is wrong (`why` of a node).
    `exec` ends with the command's own.
    """
    ctx.obj = root_dir


def main() -> None:
    """Entry point."""
    try:
        glasslet(prog_name="glasslet")
    except BrokenPipeError:
        # The reader closed the pipe (`| head`); the interpreter must not complain while it ends.
        sys.stderr.close()
        sys.exit(141)
