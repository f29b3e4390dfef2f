"""docs/commands.md is what the commands say of themselves."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import click
import pytest

from glasslet.cli.app import COMMANDS, glasslet
from glasslet.config.flags.table import GROUPS, WINDOWS_ONLY

SCRIPT = Path(__file__).parents[3] / "scripts" / "commands_page.py"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("glasslet_commands_page", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


commands_page = load_script()


def options() -> list[tuple[str, click.Option]]:
    context = click.Context(glasslet)
    commands = {name: glasslet.get_command(context, name) for name in COMMANDS}
    return [
        (name, parameter)
        for name, command in commands.items()
        if command is not None
        for parameter in command.params
        if isinstance(parameter, click.Option)
    ]


def test_the_page_is_what_the_script_prints() -> None:
    assert commands_page.PAGE.read_text() == commands_page.page(), "run scripts/commands_page.py > docs/commands.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section(name: str) -> None:
    assert f"\n### glasslet {name}\n" in commands_page.page()


@pytest.mark.parametrize(
    ("command", "option"), [pytest.param(name, option, id=f"{name} {option.opts[0]}") for name, option in options()]
)
def test_every_option_has_a_meaning_and_a_value(command: str, option: click.Option) -> None:
    assert option.help, f"{command}: {option.opts}"
    assert option.is_flag or option.metavar, f"{command}: {option.opts}"


def test_every_flag_of_the_kubelet_is_there() -> None:
    page = commands_page.page()
    flags = [flag.name for group in GROUPS.values() for flag in group if flag.name not in WINDOWS_ONLY]
    assert [name for name in flags if f"| `--{name}`" not in page] == []


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert commands_page.table(("a",), [("x|y",)]) == "\n| a |\n| --- |\n| x\\|y |\n"
