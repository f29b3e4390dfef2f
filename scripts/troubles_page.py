#!/usr/bin/env python3
"""Prints docs/troubles.md: every trouble of tests/troubles, and the sentence that it got.

Usage: scripts/troubles_page.py FOLDER > docs/troubles.md    (FOLDER: the sentences that `scripts/test-troubles` kept)

A trouble of which FOLDER has no sentence keeps the one that the page has.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.troubles import areas  # noqa: E402
from tests.troubles.table import Trouble, steady  # noqa: E402, F401

Rows = dict[str, tuple[str, str]]
PAGE = ROOT / "docs" / "troubles.md"
HEADER = """\
# Troubles

What `glasslet why` says when something is wrong. `scripts/test-troubles` makes each trouble for real and writes this
page: on a real container runtime, and where it takes one on a real API server, disk, network plugin or certificate. The
sentences are those that came; times, addresses and numbers of processes are replaced by words in capitals.
[Rules](rules.md) explains the rules. Troubles marked * are also made by the ordinary test command.
"""
_ROW = re.compile(r"^\| `(?P<name>[^`]+)`\*? \| .* \| `(?P<rule>\w+)` \| (?P<sentence>.*) \|$")


def page(kept: Path | None) -> str:
    """The whole page."""
    known = rows()
    return "".join([HEADER, *(part for area, troubles in areas() for part in _area(area, troubles, kept, known))])


def rows() -> Rows:
    """(rule, sentence) of each trouble that the page has, by name."""
    lines = PAGE.read_text().splitlines() if PAGE.exists() else []
    return {found["name"]: (found["rule"], found["sentence"]) for line in lines if (found := _ROW.match(line))}


def _area(
    area: str, troubles: tuple[Trouble, ...], kept: Path | None, known: dict[str, tuple[str, str]]
) -> Iterator[str]:
    yield f"\n## {area}\n\n| name | trouble | rule | the sentence |\n| --- | --- | --- | --- |\n"
    for trouble in troubles:
        rule, sentence = known.get(trouble.name, (str(trouble.rule), ""))
        file = kept / f"{trouble.name}.json" if kept is not None else None
        if file is not None and file.exists():
            found = json.loads(file.read_text())
            rule, sentence = found["rule"], _cell(found["sentence"])
        mark = "*" if trouble.quick else ""
        yield f"| `{trouble.name}`{mark} | {_cell(trouble.made)} | `{rule}` | {sentence} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


if __name__ == "__main__":
    sys.stdout.write(page(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
