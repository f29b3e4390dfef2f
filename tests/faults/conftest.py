"""Gathers the rows and prints them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.faults.table import LONG, Row

ROWS: pytest.StashKey[list[Row]] = pytest.StashKey()
PASSED: pytest.StashKey[bool] = pytest.StashKey()


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Iterator[Row]:
    """The row of this test."""
    made = Row(name=request.node.name.removeprefix("test_").replace("_", " "))
    request.config.stash.setdefault(ROWS, []).append(made)
    yield made
    made.passed = request.node.stash.get(PASSED, False)
    made.seconds = time.monotonic() - made.began


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if call.when == "call":
        item.stash[PASSED] = report.passed  # type: ignore[attr-defined]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(ROWS, [])
    if rows:
        terminalreporter.section(f"faults ({'long' if LONG else 'short'} form): row | done | held | figures | time")
        for one in rows:
            terminalreporter.line(one.line())
