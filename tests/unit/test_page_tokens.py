"""The page's colours: read off the style sheets and computed, so that a new one cannot be too pale."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "glasslet" / "page"
TOKENS = (FOLDER / "tokens.css").read_text()
THEMES = ("light", "dark")
"""In the order of light-dark()."""
GROUNDS = ("bg", "surface", "sunk", "raised", "hover", "chosen")
TEXTS = ("ink", "ink-2", "ink-3", "accent", "fine", "start", "wait", "fail", "held", "stop", "ended")
CODE = ("s-kw", "s-str", "s-com", "s-def")
STATES = ("fine", "start", "wait", "fail", "held", "stop", "ended")
PARTIES = ("p-runtime", "p-api", "p-pod", "p-wait", "p-glasslet", "p-held")


PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
COLOURS = {theme: {found[0]: found[1 + at] for found in PAIR.findall(TOKENS)} for at, theme in enumerate(THEMES)}


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
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


def test_every_colour_has_both_themes() -> None:
    assert not re.search(r"--[\w-]+: #", TOKENS)
    assert len(COLOURS["dark"]) > 40


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


SIGHTS = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""How linear red, green and blue are seen without one kind of cone (Machado, Oliveira and Fernandes, 2009)."""
LEAST_DISTANCE = 15.0
Colour = tuple[float, float, float]


def linear(colour: str) -> Colour:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return _linear(red), _linear(green), _linear(blue)


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def seen(colour: str, sight: str) -> Colour:
    """CIE Lab of the colour as it is seen."""
    red, green, blue = (max(0.0, min(1.0, _times(row, linear(colour)))) for row in SIGHTS[sight])
    x = 0.4124 * red + 0.3576 * green + 0.1805 * blue
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = 0.0193 * red + 0.1192 * green + 0.9505 * blue
    fx, fy, fz = (_cube_root(part / white) for part, white in ((x, 0.9505), (y, 1.0), (z, 1.089)))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def _times(row: Colour, colour: Colour) -> float:
    return sum(one * other for one, other in zip(row, colour, strict=True))


def _cube_root(part: float) -> float:
    return part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sight", SIGHTS)
def test_parties_differ_for_the_colour_blind(theme: str, sight: str) -> None:
    """Hatch, stripes and dots tell them apart without any colour; these are the distances of colour alone."""
    labs = {party: seen(COLOURS[theme][party], sight) for party in PARTIES}
    near = {
        f"{one} {other}": round(math.dist(labs[one], labs[other]), 1)
        for one, other in itertools.combinations(PARTIES, 2)
        if math.dist(labs[one], labs[other]) < LEAST_DISTANCE
    }
    assert near == {}


def test_the_distance_finds_red_beside_green_too_near_for_the_colour_blind() -> None:
    red, green = "#b06a5a", "#7f7f58"
    assert math.dist(seen(red, "deutan"), seen(green, "deutan")) < LEAST_DISTANCE
