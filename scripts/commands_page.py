#!/usr/bin/env python3
"""Prints docs/commands.md: every command, option and flag of all programs, from the commands themselves.

Usage: scripts/commands_page.py > docs/commands.md    (with the package importable)
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from glasslet.cli.app import COMMANDS, glasslet
from glasslet.cli.cluster.app import CLUSTER_COMMANDS, OWN, connection_options, glass, scope_options
from glasslet.cli.failure import Failure
from glasslet.cli.why_command import WRONG
from glasslet.config.flags.help import KINDS
from glasslet.config.flags.table import CADVISOR_GROUP, CONFIG_FILE, GROUPS, WINDOWS_ONLY, Flag, deprecation
from glasslet.config.gate_table import GATES, Stage

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"

HEADER = """\
# Commands

Every command, option and flag of `glasslet`, `kubectl glass` and `kubelet`. `scripts/commands_page.py` makes this page
from the commands; a test fails when it is out of date.
"""
GLASSLET = """
## glasslet

The command line tool. It talks to the agent over its Unix socket (`<root-dir>/glasslet.sock`), so it needs root but no
API server. When no agent runs, `trace` and `why` read the record on disk. Every command has `--help`.
"""
CLUSTER = """
## kubectl glass

The same questions for the pods of a cluster: the kubectl plugin `kubectl-glass` asks each pod's node through the API
server ([how to](howto/kubectl-glass.md)). Commands that `glasslet` has too take the same options, and in addition:
"""
KUBELET = """
## kubelet

The node agent. It takes the flags, the configuration file and the drop-ins of the Go kubelet.

```
kubelet [flags]                                        run until TERM or INT; containers keep running
kubelet check [--effective] [-o json|text] -- [flags]  report every problem of flags, files and machine
kubelet check [-o json|text] FILE...                   report every problem of pod manifests
kubelet --version, --version=raw                       print the Kubernetes version
kubelet --help                                         print the flags
```

`glasslet check` calls `kubelet check`. Exit codes: 0 after TERM or INT, 1 for problems of flags, configuration or
machine and for a start that fails, 130 for Ctrl-C during the start.

Drop-ins override the configuration file, and flags override both. The column *field* names the field of
KubeletConfiguration that a flag sets; flags marked * are deprecated upstream in favour of that field.
"""


def page() -> str:
    """The whole page."""
    return "".join([HEADER, GLASSLET, *_glasslet(), *_cluster(), KUBELET, *_kubelet()])


def _glasslet() -> Iterator[str]:
    context = click.Context(glasslet, info_name="glasslet")
    yield "\n### Exit codes\n"
    yield table(("code", "meaning"), _exit_codes())
    yield "\n### Global options\n"
    yield _options(glasslet, context)
    for name in COMMANDS:
        command = glasslet.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        usage = " ".join([inner.command_path, *command.collect_usage_pieces(inner)])
        yield f"\n### glasslet {name}\n\n```\n{usage}\n```\n\n{_prose(command.help or '')}\n"
        yield _options(command, inner)


def _cluster() -> Iterator[str]:
    context = click.Context(glass, info_name="kubectl glass")
    yield CLUSTER
    shared = click.Command("shared", params=[*scope_options(), *connection_options(hidden=False)])
    yield _options(shared, click.Context(shared))
    yield "\nkubectl's other options for the connection are taken, too: `--cluster`, `--user`, `--server` and so on.\n"
    yield table(("command", "what it does"), ((f"`{name}`", text) for name, text in CLUSTER_COMMANDS.items()))
    for name in OWN:
        command = glass.get_command(context, name)
        assert command is not None
        yield f"\n### kubectl glass {name}\n\n{_prose(command.help or '')}\n"
        yield _options(command, click.Context(command, info_name=name, parent=context))


def _exit_codes() -> Iterator[tuple[str, str]]:
    yield "0", "done"
    yield "1", "refused, or failed"
    yield "2", "wrong usage"
    failures: dict[int, list[str]] = {}
    for kind in Failure.__subclasses__():
        if kind.exit_code == Failure.exit_code:
            continue
        failures.setdefault(kind.exit_code, []).append(inspect.cleandoc(kind.__doc__ or "").rstrip("."))
    for code, meanings in sorted(failures.items()):
        yield str(code), "; ".join(meaning[:1].lower() + meaning[1:] for meaning in meanings)
    yield str(WRONG), "`why` without a name, `why node`: something is wrong"
    yield "130", "ended by Ctrl-C"
    yield "other", "`exec`: the exit code of the command in the container"


def _prose(text: str) -> str:
    """A help text as paragraphs of one line each."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _options(command: click.Command, context: click.Context) -> str:
    rows = []
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Option) and "--help" not in parameter.opts and not parameter.hidden:
            names = ", ".join(f"`{name}`" for name in parameter.opts)
            value = f"`{parameter.metavar}`" if parameter.metavar else ""
            rows.append((names, value, _default(parameter), parameter.help or ""))
    if not rows:
        return ""
    return table(("option", "value", "default", "meaning"), rows)


def _default(option: click.Option) -> str:
    shown = option.show_default and not option.is_flag and option.default not in (None, "")
    return f"`{option.default}`" if shown else ""


def _kubelet() -> Iterator[str]:
    for group, flags in GROUPS.items():
        yield f"\n### {group}\n"
        shown = [flag for flag in flags if flag.name not in WINDOWS_ONLY]
        yield table(
            ("flag", "value", "default", "field", "meaning"),
            (_flag(flag, mention=group != CADVISOR_GROUP) for flag in shown),
        )
    yield "\n### Feature gates\n\nAlpha and beta gates of `--feature-gates` and `featureGates`.\n"
    yield table(
        ("gate", "default", "stage"),
        (
            (f"`{name}`", "on" if gate.default else "off", str(gate.stage).lower())
            for name, gate in sorted(GATES.items())
            if gate.stage in (Stage.ALPHA, Stage.BETA)
        ),
    )


def _flag(flag: Flag, *, mention: bool) -> tuple[str, str, str, str, str]:
    instead = deprecation(flag)
    kind = KINDS.get(flag.kind, flag.kind)
    default = flag.default if not (flag.kind == "bool" and flag.default == "false") else ""
    meaning = flag.meaning[:1].upper() + flag.meaning[1:]
    if instead and instead != CONFIG_FILE and mention:
        meaning += f" (deprecated: {instead})"
    return (
        f"`--{flag.name}`" + (" *" if instead == CONFIG_FILE else ""),
        f"`{kind}`" if kind else "",
        f"`{default}`" if default else "",
        f"`{flag.field}`" if flag.field else "",
        meaning,
    )


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n" + "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def main() -> int:
    """Prints the page."""
    print(page(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
