"""What the Go kubelet is known to do, sentence by sentence: each one is quoted by a test, or says why none does.

The sentences are in tests/data/behaviours, a file for each section, named by its number. One is quoted where a test
that names the section ("behaviours.md §22") has a few of its words in a row. Below a line, `  - REASON: SENTENCE`
excuses one of its sentences; an excuse for what a test does quote is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[1]
SECTIONS = sorted((TESTS / "data" / "behaviours").glob("*.md"))
RUN = 4
"""So many words in a row are no accident."""

COMMENT = re.compile(r"^\s*#\s?", re.MULTILINE)
AROUND = ".,;:()[]\"'`\\"


class Section(NamedTuple):
    """Sentences of a section, and those among them that no test quotes for a reason."""

    number: int
    sentences: tuple[str, ...]
    excused: tuple[str, ...]


def words(text: str) -> list[str]:
    """As they are compared: without case and what is around them."""
    return [word for piece in text.lower().split() if (word := piece.strip(AROUND))]


def sentences(line: str) -> Iterator[str]:
    """Parts of a line that can be true or false by themselves."""
    part = ""
    for piece in re.split(r"(?<=[.;]) ", line):
        part = f"{part} {piece}".strip()
        if len(words(part)) >= RUN and part.count("(") == part.count(")"):
            yield part
            part = ""
    if words(part):
        yield part


def read_section(path: Path) -> Section:
    said: list[str] = []
    excused: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("- "):
            said += sentences(line[2:])
        elif line.startswith("  - "):
            excused.append(line[4:].partition(": ")[2])
    return Section(int(path.name.partition("-")[0]), tuple(said), tuple(excused))


def load_quotes() -> dict[int, list[str]]:
    """By section: texts of the tests that name it, as words with a space around each."""
    found: dict[int, list[str]] = {}
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        if path != Path(__file__) and "behaviours" in text:
            spoken = f" {' '.join(words(COMMENT.sub('', text)))} "
            for number in {int(one) for one in re.findall(r"§(\d+)", text)}:
                found.setdefault(number, []).append(spoken)
    return found


def is_quoted(sentence: str, texts: list[str]) -> bool:
    said = words(sentence)
    runs = [f" {' '.join(said[at : at + RUN])} " for at in range(max(1, len(said) - RUN + 1))]
    return any(run in text for text in texts for run in runs)


@pytest.fixture(scope="module")
def quotes() -> dict[int, list[str]]:
    return load_quotes()


@pytest.mark.parametrize("path", SECTIONS, ids=lambda path: path.stem)
def test_every_sentence_is_quoted_or_excused(path: Path, quotes: dict[int, list[str]]) -> None:
    section = read_section(path)
    texts = quotes.get(section.number, [])
    assert [one for one in section.sentences if one not in section.excused and not is_quoted(one, texts)] == []


@pytest.mark.parametrize("path", SECTIONS, ids=lambda path: path.stem)
def test_no_excuse_is_out_of_date(path: Path, quotes: dict[int, list[str]]) -> None:
    section = read_section(path)
    texts = quotes.get(section.number, [])
    assert [one for one in section.excused if one not in section.sentences or is_quoted(one, texts)] == []


def test_a_sentence_is_a_part_of_a_line_that_says_something() -> None:
    line = "Age (s); in all of them: one. The last instance is kept for logs (and status; always). No other one is."
    assert list(sentences(line)) == [
        "Age (s); in all of them: one.",
        "The last instance is kept for logs (and status; always).",
        "No other one is.",
    ]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('# behaviours.md §9: "The last instance of a\n    # container is kept"', True),
        ('"""behaviours.md §9: "... is kept for logs and status"."""', True),
        ('# behaviours.md §9: "The last instance is kept"', False),
    ],
)
def test_a_quote_may_be_a_part_and_go_over_lines(text: str, quoted: bool) -> None:
    spoken = f" {' '.join(words(COMMENT.sub('', text)))} "
    sentence = "The last instance of a container is kept for logs and status."
    assert is_quoted(sentence, [spoken]) is quoted
