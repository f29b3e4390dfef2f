"""The processes that commands start."""

from __future__ import annotations

import re
from pathlib import Path

import glasslet

SOURCE = Path(glasslet.__file__).parent


def test_no_python_process_imports_from_the_working_directory() -> None:
    # Root may stand in a directory that others write to: `python -m` alone would run a package that lies there.
    started = [
        (path.name, words)
        for path in sorted(SOURCE.rglob("*.py"))
        for words in re.findall(r"sys\.executable,\s*(\"-\w\",\s*\"[^\"]+\")", path.read_text())
    ]
    assert len(started) == 10
    assert [name for name, words in started if '"-P"' not in words] == []
