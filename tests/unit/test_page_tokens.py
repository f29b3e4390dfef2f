"""The page's colours: read off the style sheets and computed, so that a new one cannot be too pale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "glasslet" / "page"
TOKENS = (FOLDER / "tokens.css").read_text()
THEMES = ("light", "dark")
GROUNDS = ("bg", "surface", "sunk", "raised", "hover", "chosen")
TEXTS = ("ink", "ink-2", "ink-3", "accent", "fine", "start", "wait", "fail", "held", "stop", "ended")
CODE = ("s-kw", "s-str", "s-com", "s-def")
STATES = ("fine", "start", "wait", "fail", "held", "stop", "ended")
PARTIES = ("p-runtime", "p-api", "p-pod", "p-wait", "p-glasslet", "p-held")


def declared(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def block(after: str) -> str:
    begin = TOKENS.index("{", TOKENS.index(after))
    return TOKENS[begin : TOKENS.index("}", begin)]


COLOURS = {"light": declared(block(":root {")), "dark": declared(block(':root[data-theme="dark"]'))}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ground", GROUNDS)
def test_text_is_readable_on_every_ground(theme: str, ground: str) -> None:
    colours = COLOURS[theme]
    found = {
        text: contrast(colours[text], colours[ground]) for text in (*TEXTS, *(CODE if ground == "surface" else ()))
    }
    assert {text: ratio for text, ratio in found.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_states_are_readable_on_their_tints(theme: str) -> None:
    colours = COLOURS[theme]
    assert {one for one in STATES if contrast(colours[one], colours[f"{one}-t"]) < 4.5} == set()


@pytest.mark.parametrize("theme", THEMES)
def test_parties_edges_and_focus_stand_out(theme: str) -> None:
    colours = COLOURS[theme]
    found = {one: contrast(colours[one], colours["surface"]) for one in (*PARTIES, "edge", "focus")}
    assert {one: ratio for one, ratio in found.items() if ratio < 3.0} == {}


def test_the_dark_tokens_are_the_same_by_media_query_and_by_switch() -> None:
    assert declared(block(':root:not([data-theme="light"])')) == COLOURS["dark"]


def test_both_themes_have_the_same_tokens() -> None:
    assert COLOURS["light"].keys() == COLOURS["dark"].keys()


@pytest.mark.parametrize("name", [path.name for path in FOLDER.iterdir() if path.suffix in (".css", ".js", ".html")])
def test_no_colour_stands_outside_of_the_tokens(name: str) -> None:
    if name == "tokens.css":
        return
    text = re.sub(r"href=\"#[\w-]+\"|'#\w+'|`#[^`]*`", "", (FOLDER / name).read_text())
    assert re.findall(r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b(?=[;\s\"'])", text) == []


def test_no_script_makes_html_of_a_string() -> None:
    for path in FOLDER.glob("*.js"):
        text = path.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path
        )


def test_nothing_in_the_document_is_inline() -> None:
    shell = (FOLDER / "shell.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! type=\"module\" src=)", shell)
