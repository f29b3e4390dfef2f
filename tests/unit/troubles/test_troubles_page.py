"""docs/troubles.md lists every trouble that the lane makes, with the sentence that came."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.troubles import areas
from tests.troubles.table import Trouble

SCRIPT = Path(__file__).parents[3] / "scripts" / "troubles_page.py"
EVERY = [trouble for _, troubles in areas() for trouble in troubles]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("glasslet_troubles_page", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT_MODULE = load_script()
ROWS = SCRIPT_MODULE.rows()


def test_the_page_has_the_troubles_of_the_lane_and_no_others() -> None:
    assert SCRIPT_MODULE.PAGE.read_text() == SCRIPT_MODULE.page(None), "run scripts/test-troubles"
    assert len(EVERY) >= 60


def test_each_trouble_has_a_name_of_its_own() -> None:
    names = [trouble.name for trouble in EVERY]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("trouble", EVERY, ids=lambda trouble: trouble.name)
def test_the_sentence_on_the_page_has_the_words_that_are_demanded(trouble: Trouble) -> None:
    rule, sentence = ROWS[trouble.name]
    assert rule == trouble.rule
    assert sentence.endswith((".", ")"))
    for words in trouble.says:
        assert SCRIPT_MODULE._cell(SCRIPT_MODULE.steady(words)) in sentence
