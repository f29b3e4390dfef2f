"""Every command line of glasslet in README and docs is one that the program takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from glasslet.cli.app import glasslet
from glasslet.cli.cluster.app import glass

ROOT = Path(__file__).parents[3]
SYNOPSES = ROOT / "docs/commands.md"
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - {SYNOPSES})]
PROGRAMS = {"glasslet": glasslet, "kubectl glass": glass}
LINE = re.compile(r"^(?:\$ )?(?:sudo )?(glasslet|kubectl glass) (.*)$", re.MULTILINE)
BLOCK = re.compile(r"^```[a-z]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def lines() -> Iterator[tuple[str, str]]:
    """Each command line with its page, as far as it is glasslet's: without comment, pipe, redirection."""
    for page in PAGES:
        for block in BLOCK.findall(page.read_text()):
            for program, rest in LINE.findall(block):
                yield str(page.relative_to(ROOT)), f"{program} {rest}"


def words(line: str) -> list[str]:
    split = shlex.shlex(line, posix=True, punctuation_chars="|;<>&")
    split.whitespace_split, split.commenters = True, "#"
    found = []
    for word in split:
        if word[0] in "|;<>&":
            break
        found.append(word)
    return found


@pytest.mark.parametrize("line", sorted({line for _, line in lines()}))
def test_a_command_line_of_the_docs_is_taken(line: str) -> None:
    program = next(name for name in PROGRAMS if line.startswith(f"{name} "))
    command: click.Command = PROGRAMS[program]
    arguments = words(line)[len(program.split()) :]
    context = click.Context(command, info_name=program)
    while isinstance(command, click.Group):
        assert not arguments[0].startswith("-") or arguments[0] in ("--help", "--root-dir"), line
        if arguments[0] == "--root-dir":
            arguments = arguments[2:]
        found = command.get_command(context, arguments[0])
        assert found is not None, line
        command, arguments = found, arguments[1:]
    if "--help" not in arguments:
        command.make_context(program, arguments, parent=context)


def test_there_are_such_lines_on_the_pages_that_lead_from_elsewhere() -> None:
    known = [page for page, _ in lines()]
    for name in ("from-delve-to-breaks", "follow-a-pod-by-breaks", "read-the-calls", "attach-a-debugger", "stuck-pod"):
        assert known.count(f"docs/howto/{name}.md") >= 1, name
