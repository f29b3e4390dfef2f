#!/usr/bin/env python3
"""Writes the man pages of `glasslet`, `kubectl-glass` and `kubelet` from the commands themselves.

Usage: scripts/man_pages.py FOLDER    (with the package importable) writes FOLDER/man1/*.1 and FOLDER/man8/kubelet.8
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from glasslet.cli.app import Commands, glasslet
from glasslet.cli.cluster.app import glass
from glasslet.config.flags.help import KINDS
from glasslet.config.flags.table import GROUPS, WINDOWS_ONLY
from glasslet.version import VERSION

_KUBELET_HEAD = r"""
.SH NAME
kubelet \- the Kubernetes node agent (glasslet)
.SH SYNOPSIS
.B kubelet
[flags]
.br
.B kubelet check
[\-\-effective] [\-o json|text] \-\- [flags]
.br
.B kubelet check
[\-o json|text] FILE...
.SH DESCRIPTION
Runs the pods of a node, with the flags, files and ports of the Go kubelet. It runs until TERM or INT;
containers keep running. Drop\-ins override the configuration file, and flags override both.
""".lstrip()
SEE_ALSO = {"glasslet": ("kubectl-glass(1)", "kubelet(8)"), "kubectl-glass": ("glasslet(1)", "kubectl(1)")}


def pages() -> Iterator[tuple[str, str]]:
    """Each page: its name (`glasslet-ps.1`) and text."""
    for name, group in (("glasslet", glasslet), ("kubectl-glass", glass)):
        assert isinstance(group, Commands)
        context = click.Context(group, info_name=name.replace("-", " "))
        yield f"{name}.1", _group_page(name, group, context)
        for command_name in group.list_commands(context):
            command = group.get_command(context, command_name)
            assert command is not None
            inner = click.Context(command, info_name=command_name, parent=context)
            yield f"{name}-{command_name}.1", _command_page(f"{name}-{command_name}", command, inner, (f"{name}(1)",))
    yield "kubelet.8", _kubelet_page()


def _group_page(name: str, group: Commands, context: click.Context) -> str:
    commands = "".join(
        f".TP\n.BR {_word(f'{name}-{command}')} (1)\n{_text(text)}\n" for command, text in group.table.items()
    )
    body = _command_page(name, group, context, SEE_ALSO[name])
    return body.replace('.SH "SEE ALSO"', f'.SH COMMANDS\n{commands}.SH "SEE ALSO"')


def _command_page(name: str, command: click.Command, context: click.Context, see_also: Sequence[str]) -> str:
    first, *others = _paragraphs(command.help or "")
    usage = " ".join(command.collect_usage_pieces(context))
    options = "".join(
        f".TP\n{_names(parameter)}\n{_text(_meaning(parameter))}\n"
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and not parameter.hidden
    )
    return "".join(
        [
            _title(name, 1),
            f".SH NAME\n{_word(name)} \\- {_text(first.rstrip('.'))}\n",
            f".SH SYNOPSIS\n.B {_text(context.command_path)}\n{_text(usage)}\n",
            ".SH DESCRIPTION\n" + ".PP\n".join(f"{_text(paragraph)}\n" for paragraph in (first, *others)),
            f".SH OPTIONS\n{options}",
            f'.SH "SEE ALSO"\n{_references(see_also)}',
        ]
    )


def _kubelet_page() -> str:
    parts = [_title("kubelet", 8), _KUBELET_HEAD]
    for group, flags in GROUPS.items():
        parts.append(f".SH {_word(group.upper())}\n")
        for flag in flags:
            if flag.name not in WINDOWS_ONLY:
                kind = KINDS.get(flag.kind, flag.kind)
                default = f" Default: {flag.default}." if flag.default and flag.kind != "bool" else ""
                field = f" Field of KubeletConfiguration: {flag.field}." if flag.field else ""
                meaning = flag.meaning[:1].upper() + flag.meaning[1:].rstrip(".")
                parts.append(
                    f".TP\n.B {_text(f'--{flag.name}')} {_text(kind)}\n{_text(meaning)}.{_text(default + field)}\n"
                )
    parts.append(f'.SH "SEE ALSO"\n{_references(("glasslet(1)",))}')
    return "".join(parts)


def _title(name: str, section: int) -> str:
    return f'.TH {_word(name.upper())} {section} "" "glasslet {VERSION}" "glasslet"\n.nh\n.ad l\n'


def _names(option: click.Option) -> str:
    names = ", ".join(option.opts)
    value = f" {option.metavar}" if option.metavar and not option.is_flag else ""
    return f".B {_text(names + value)}"


def _meaning(option: click.Option) -> str:
    shown = option.show_default and not option.is_flag and option.default not in (None, "")
    return (option.help or "") + (f" Default: {option.default}." if shown else "")


def _references(names: Sequence[str]) -> str:
    return ",\n".join(f".BR {_word(name[:-3])} {name[-3:]}" for name in names) + "\n"


def _paragraphs(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n")]


def _word(text: str) -> str:
    return f'"{_text(text)}"' if " " in text else _text(text)


def _text(text: str) -> str:
    """Text as roff shows it unchanged."""
    text = (
        text.replace("\\", "\\(rs").replace("-", "\\-").replace("`", "\\(ga").replace("…", "...").replace("'", "\\(aq")
    )
    return re.sub(r"^([.])", r"\\&\1", text, flags=re.MULTILINE)


def main() -> int:
    """Writes the pages."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: scripts/man_pages.py FOLDER", file=sys.stderr)
        return 2
    for name, text in pages():
        path = Path(sys.argv[1]) / f"man{name[-1]}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
