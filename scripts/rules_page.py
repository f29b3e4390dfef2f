#!/usr/bin/env python3
"""Prints docs/rules.md: every rule of `glasslet why`, from the explanations of `glasslet why --explain`.

Usage: scripts/rules_page.py > docs/rules.md    (with the package importable)
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from glasslet.answers.rules import ABOUT_NODES, PAGES
from glasslet.answers.states import Rule

PAGE = Path(__file__).parents[1] / "docs" / "rules.md"

HEADER = """\
# Rules

Each sentence of `glasslet why` comes from a rule and carries its id (`-o json`, field `rule`). `glasslet why --explain
RULE` prints the same text. `scripts/rules_page.py` makes this page; a test fails when it is out of date.
"""


def page() -> str:
    """The whole page."""
    pods = [rule for rule in PAGES if rule not in ABOUT_NODES]
    return "".join([HEADER, *_part("About a pod", pods), *_part("About the node", ABOUT_NODES)])


def _part(title: str, rules: Iterable[Rule]) -> Iterable[str]:
    yield f"\n## {title}\n"
    for rule in rules:
        text = PAGES[rule]
        yield f"\n### {rule}\n\n{text.means}\n\n- Evidence: {text.evidence}\n- What helps: {text.helps}\n"


if __name__ == "__main__":
    sys.stdout.write(page())
