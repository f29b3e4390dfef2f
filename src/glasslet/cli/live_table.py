"""A text that changes in place on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def live_table() -> Iterator[Callable[[str], None]]:
    """Gives a function that replaces what is shown."""
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False, vertical_overflow="visible") as live:

        def shown(text: str) -> None:
            rendered = Text.from_ansi(text)
            rendered.no_wrap = True
            rendered.overflow = "ellipsis"
            live.update(rendered, refresh=True)

        yield shown
