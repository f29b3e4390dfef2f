"""`-w`: an answer that is asked for again and again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import click

from glasslet.cli.output import live_text, on_terminal, without_figures, write

SECONDS = 1.0
"""Between two questions."""

watch_option = click.option("-w", "--watch", is_flag=True, help="Keep updating until Ctrl-C; text only.")


def watched(text: Callable[[], str]) -> None:
    """Shows the text until Ctrl-C: in place on a terminal, elsewhere whenever more than its figures changed."""
    with contextlib.suppress(KeyboardInterrupt):
        if on_terminal():
            with live_text() as shown:
                while True:
                    shown(text())
                    time.sleep(SECONDS)
        before = None
        while True:
            now = text()
            if before is None or without_figures(now) != without_figures(before):
                write(now)
            before = now
            time.sleep(SECONDS)
