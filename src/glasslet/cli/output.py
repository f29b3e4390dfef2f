"""Output: plain text, JSON or YAML; colour and width only on a terminal."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

import click

from glasslet.answers.wire import WireMessage, encode, to_plain

TEXT, JSON, YAML = "text", "json", "yaml"
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

_LEAST_COLUMN = 8
_FOR_FILE: ContextVar[bool] = ContextVar("_FOR_FILE", default=False)
_FIGURES = re.compile(r"\d[\d.]*( (ms|s|min|h|d)\b)?")

output_option = click.option(
    "-o",
    "--output",
    "form",
    metavar=f"{TEXT}|{JSON}|{YAML}",
    type=click.Choice([TEXT, JSON, YAML]),
    default=TEXT,
    show_default=True,
    help="The form of the output.",
)


def show(answer: WireMessage, form: str, text: Callable[[], str]) -> None:
    """Writes an answer in the given form."""
    if form == JSON:
        sys.stdout.write(json.dumps(json.loads(encode(answer)), indent=2, ensure_ascii=False) + "\n")
    elif form == YAML:
        import yaml

        yaml.safe_dump(to_plain(answer), sys.stdout, sort_keys=False, allow_unicode=True)
    else:
        write(text())


def write(text: str) -> None:
    """Writes text and a line end."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def on_terminal() -> bool:
    """Whether text is for a terminal: standard output is one."""
    return not _FOR_FILE.get() and sys.stdout.isatty()


@contextmanager
def plain_text() -> Iterator[None]:
    """Text made in the body is for a file: without colour, and as wide as it is."""
    token = _FOR_FILE.set(True)
    try:
        yield
    finally:
        _FOR_FILE.reset(token)


def width() -> int:
    """Columns of the terminal; wide without one."""
    return shutil.get_terminal_size().columns if on_terminal() else 160


def styled(text: str, style: str) -> str:
    """Printable text, in a style (see `_STYLES`) on a terminal."""
    if not style or not on_terminal() or os.environ.get("NO_COLOR"):
        return printable(text)
    return f"\x1b[{_STYLES[style]}m{printable(text)}\x1b[0m"


def printable(text: str) -> str:
    """The text without control characters: text from pods must not drive the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[Sequence[str]] = ()) -> str:
    """Columns, two spaces apart; the last one is not padded. `styles` has a style (or "") for each cell."""
    sizes = [max(len(row[column]) for row in [headers, *rows]) for column in range(len(headers))]
    lines = [_line(headers, sizes, ["bold"] * len(headers))]
    for index, row in enumerate(rows):
        lines.append(_line(row, sizes, styles[index] if styles else [""] * len(row)))
    return "\n".join(lines)


def fitted(rows: Sequence[Sequence[str]], headers: Sequence[str], *, columns: Sequence[int]) -> list[Sequence[str]]:
    """The rows, with these columns cut, the widest first, so that the table fits the terminal; without a terminal,
    unchanged."""
    sizes = [max(len(row[index]) for row in [headers, *rows]) for index in range(len(headers))]
    excess = sum(sizes) + 2 * (len(sizes) - 1) - width()
    if not on_terminal() or excess <= 0:
        return list(rows)
    for _ in range(excess):
        widest = max(columns, key=lambda index: sizes[index])
        if sizes[widest] <= _LEAST_COLUMN:
            break
        sizes[widest] -= 1
    return [[cut(cell, sizes[index]) for index, cell in enumerate(row)] for row in rows]


def clock_time(moment: datetime | None) -> str:
    """Local time of day with milliseconds; "-" if unknown."""
    return moment.astimezone().strftime("%H:%M:%S.%f")[:-3] if moment is not None else "-"


@contextmanager
def live_text() -> Iterator[Callable[[str], None]]:
    """A function that replaces the text on the terminal."""
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False, vertical_overflow="visible") as live:

        def show_text(text: str) -> None:
            rendered = Text.from_ansi(text)
            rendered.no_wrap = True
            rendered.overflow = "ellipsis"
            live.update(rendered, refresh=True)

        yield show_text


def without_figures(text: str) -> str:
    """The text without figures and durations, which change all the time."""
    return _FIGURES.sub("", text)


def cut(text: str, room: int) -> str:
    """The text, with a mark where it had to be cut."""
    return text if len(text) <= room else text[: room - 1] + "…"


def _line(cells: Sequence[str], sizes: Sequence[int], styles: Sequence[str]) -> str:
    parts = []
    for index, (cell, size, style) in enumerate(zip(cells, sizes, styles, strict=True)):
        padding = "" if index == len(cells) - 1 else " " * (size - len(cell) + 2)
        parts.append(styled(cell, style) + padding)
    return "".join(parts).rstrip()
