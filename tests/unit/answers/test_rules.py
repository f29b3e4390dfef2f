"""Every rule of a verdict is explained, on a page that is up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from glasslet.answers.rules import PAGES
from glasslet.answers.states import Rule

SCRIPT = Path(__file__).parents[3] / "scripts" / "rules_page.py"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("glasslet_rules_page", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_script_prints() -> None:
    rules_page = load_script()
    assert rules_page.PAGE.read_text() == rules_page.page(), "run scripts/rules_page.py > docs/rules.md"


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_is_explained(rule: Rule) -> None:
    page = PAGES[rule]
    assert page.means.endswith(".")
    assert page.evidence.endswith(".")
    assert page.helps.endswith((".", ")."))
