"""The form of a trouble, and what is demanded of the sentence that it gets.

A trouble is made for real: on a real runtime, and where it takes one a real API server, disk, network plugin or
certificate. docs/troubles.md lists them all with the sentences that came; `scripts/test-troubles` writes it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from glasslet.answers.states import Rule
from tests.skips import on_purpose

Plain = dict[str, Any]
KEPT = "GLASSLET_TROUBLES_KEPT"
"""The folder for the sentences, where the page is to be written from them."""
ALL = os.environ.get("GLASSLET_TROUBLES") == "all"
"""Every trouble is made; else the quick ones."""
_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|\d\d:\d\d:\d\d UTC|\d{4}-\d\d-\d\dT[\d:.+]+Z?"), "TIME"),
    (re.compile(r"\b\d[\d.]* (ms|s|min|h|d)( \d+ (s|min|h))?\b"), "DURATION"),
    (re.compile(r"/tmp/(?:[\w.-]+/)*?(?=(?:root|manifests|folder)\b)"), "FOLDER/"),
    (re.compile(r"/tmp/glt-\w+/"), "FOLDER/"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b"), "UID"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "ID"),
    (re.compile(r"\bpid \d+"), "pid N"),
    (re.compile(r"\bprocess \d+"), "process N"),
    (re.compile(r"\b(10|127|198)\.\d+\.\d+\.\d+:\d\d+"), "ADDRESS:PORT"),
    (re.compile(r"\b(10|127|198)\.\d+\.\d+\.\d+\b"), "ADDRESS"),
)


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """One way in which something is not as it should be. `made`: how it is made, for the page; `says`: words that the
    first sentence must have. `dated`: since when it holds is known. `pod`: the manifest, made when a world is there."""

    name: str
    made: str
    rule: Rule
    says: tuple[str, ...]
    pod: Callable[[Any], Plain] | None = None
    quick: bool = False
    dated: bool = True


def chosen(troubles: Sequence[Trouble]) -> list[Trouble]:
    """Those that this run makes."""
    return [trouble for trouble in troubles if ALL or trouble.quick]


def each_chosen(troubles: Sequence[Trouble]) -> pytest.MarkDecorator:
    """Runs the test for each trouble that this run makes."""
    found = [pytest.param(trouble, id=trouble.name) for trouble in chosen(troubles)]
    reason = on_purpose("none of these is quick: scripts/test-troubles makes them")
    return pytest.mark.parametrize(
        "trouble", found or [pytest.param(None, id="none", marks=pytest.mark.skip(reason=reason))]
    )


def fits(trouble: Trouble, verdict: Plain) -> bool:
    """Whether the verdict is the one that is expected; it may have been another on the way there."""
    return verdict.get("rule") == trouble.rule and all(words in verdict["sentence"] for words in trouble.says)


def judge(trouble: Trouble, verdict: Plain, *, has_run: bool) -> None:
    """What holds for every answer, beyond its words. Keeps the sentence for the page."""
    assert "since" in verdict or not trouble.dated, verdict
    assert verdict.get("nextStep") or verdict["state"] in ("fine", "starting", "stopping", "ended"), verdict
    if not has_run:
        assert "glasslet logs" not in verdict.get("nextStep", ""), "a container that never ran has no log"
    if folder := os.environ.get(KEPT):
        kept = {"rule": verdict["rule"], "sentence": steady(verdict["sentence"])}
        Path(folder, f"{trouble.name}.json").write_text(json.dumps(kept, ensure_ascii=False))


def steady(sentence: str) -> str:
    """The sentence without what differs from run to run: times, places, numbers of processes."""
    for pattern, word in _CHANGING:
        sentence = pattern.sub(word, sentence)
    return " ".join(sentence.split())
