"""One executor for the whole process would let one component hold up all others."""

from __future__ import annotations

import ast
from pathlib import Path

import glasslet

SOURCES = sorted(Path(glasslet.__file__).parent.rglob("*.py"))


def uses_default_executor(source: str) -> list[str]:
    """Calls that take a thread of asyncio's own executor."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = [(call.func.attr, call) for call in calls if isinstance(call.func, ast.Attribute)]
    return [
        name
        for name, call in named
        if name == "to_thread" or (name == "run_in_executor" and isinstance(call.args[0], ast.Constant))
    ]


def test_no_module_uses_the_executor_of_the_event_loop() -> None:
    assert {str(path): found for path in SOURCES if (found := uses_default_executor(path.read_text()))} == {}


def test_such_a_use_would_be_found() -> None:
    assert uses_default_executor("asyncio.to_thread(print); loop.run_in_executor(None, print)") == [
        "to_thread",
        "run_in_executor",
    ]
