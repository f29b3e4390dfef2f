"""An answer that is asked for again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from glasslet.cli import watching


@pytest.fixture
def five_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes during the fifth pause."""
    rounds = iter(range(5))

    def sleep(_seconds: float) -> None:
        if next(rounds) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)


def test_without_a_terminal_a_text_is_printed_when_more_than_its_figures_changed(
    five_rounds: None, capsys: pytest.CaptureFixture[str]
) -> None:
    texts: Iterator[str] = iter(["waits for 1.0 s", "waits for 2 s", "runs", "runs", "no waits"])
    watching.watched(lambda: next(texts))
    assert capsys.readouterr().out.splitlines() == ["waits for 1.0 s", "runs", "no waits"]
