"""The command line: pflag's syntax, upstream's deprecation lines, flags of older years, all problems at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from glasslet.config.flags.removed import REMOVED, warning_of
from glasslet.config.flags.table import FLAGS, WINDOWS_ONLY, Flag, deprecation
from glasslet.config.flags.values import PARSERS, combine
from glasslet.config.problem import ConfigProblem, Notice, Step

SECRET_FLAGS = frozenset({"manifest-url-header", "storage-driver-password"})
"""Their values are never shown."""
_SHORT = {"v": "v", "h": "help"}
_WITHOUT_ARGUMENT = frozenset({"bool", "version"})


@dataclass(slots=True)
class ParsedFlags:
    """The result: `values` by flag name, plain data, repeated occurrences folded."""

    values: dict[str, Any] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    problems: list[ConfigProblem] = field(default_factory=list)


def parse(arguments: Iterable[str]) -> ParsedFlags:
    """Reads a command line (without the program's name). Never raises: problems are part of the result."""
    result = ParsedFlags()
    rest = list(arguments)
    rest.reverse()
    while rest:
        argument = rest.pop()
        if argument == "--":
            for stray in reversed(rest):
                _stray(stray, result)
            break
        if argument.startswith("--"):
            _long(argument, rest, result)
        elif argument.startswith("-") and len(argument) > 1:
            _short(argument, rest, result)
        else:
            _stray(argument, result)
    return result


def _stray(argument: str, result: ParsedFlags) -> None:
    shown = argument[:200]
    result.problems.append(
        ConfigProblem(Step.PARSE, shown, f"unknown command {shown}", shown, "flags only: --name=value", "command line")
    )


def _long(argument: str, rest: list[str], result: ParsedFlags) -> None:
    written, equals, value = argument[2:].partition("=")
    name = written.replace("_", "-")
    if not written or written.startswith("-"):
        _refuse(result, argument[:200], f"bad flag syntax: {argument[:200]}", "--name=value")
    elif flag := FLAGS.get(name) if name not in WINDOWS_ONLY else None:
        _take(flag, value if equals else None, rest, result)
    elif removed := REMOVED.get(name):
        if removed.takes_value and not equals and rest:
            rest.pop()
        result.notices.append(Notice(warning_of(removed), f"--{name}", "command line"))
    else:
        # The word after an unknown flag is most likely its value; a second problem about it would not help.
        if not equals and rest and not rest[-1].startswith("-"):
            rest.pop()
        _unknown(written, name, result)


def _short(argument: str, rest: list[str], result: ParsedFlags) -> None:
    letter, value = argument[1], argument[2:]
    name = _SHORT.get(letter)
    if name is None:
        text = f"unknown shorthand flag: {letter!r} in {argument[:200]}"
        hint = f"-{argument}" if argument[1:].partition("=")[0].replace("_", "-") in FLAGS else "-v, -h"
        _refuse(result, f"-{letter}", text, hint)
    elif value and FLAGS[name].kind in _WITHOUT_ARGUMENT and not value.startswith("="):
        _take(FLAGS[name], None, rest, result)
        _short("-" + value, rest, result)
    else:
        _take(FLAGS[name], value.removeprefix("=") if value else None, rest, result)


def _take(flag: Flag, value: str | None, rest: list[str], result: ParsedFlags) -> None:
    if value is None and flag.kind in _WITHOUT_ARGUMENT:
        value = "true"
    if value is None:
        if not rest:
            _refuse(result, f"--{flag.name}", f"flag needs an argument: --{flag.name}", "a value")
            return
        value = rest.pop()
    if instead := deprecation(flag):
        text = f"Flag --{flag.name} has been deprecated, {instead}"
        result.notices.append(Notice(text, f"--{flag.name}", "command line"))
    if flag.kind == "ip" and not value:
        return
    try:
        parsed = PARSERS[flag.kind](value)
    except ValueError as error:
        shown = "<masked>" if flag.name in SECRET_FLAGS else value[:200]
        text = f'invalid argument "{shown}" for "--{flag.name}" flag: {error}'
        _refuse(result, f"--{flag.name}", text, str(error), shown)
        return
    if flag.name in result.values:
        parsed = combine(flag.kind, result.values[flag.name], parsed)
    result.values[flag.name] = parsed


def _unknown(written: str, name: str, result: ParsedFlags) -> None:
    shown = written[:200]
    if name in WINDOWS_ONLY:
        hint = " (it exists on Windows only)"
    else:
        import difflib

        near = difflib.get_close_matches(name[:100], FLAGS, n=1, cutoff=0.7)
        hint = f", did you mean --{near[0]}?" if near else ""
    _refuse(result, f"--{shown}", f"unknown flag: --{shown}{hint}", "a flag of kubelet --help")


def _refuse(result: ParsedFlags, name: str, text: str, allowed: str, value: str = "") -> None:
    result.problems.append(ConfigProblem(Step.PARSE, name, text, value, allowed, "command line"))
