"""Every page is in the site's menu, and pages, docstrings and comments refer only to what is in the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
SOURCES = sorted(path for folder in ("src", "tests", "scripts", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
GENERATED = "_generated"

LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")
MENTION = re.compile(r"`{1,2}([A-Za-z0-9_./{},*-]+\.(?:py|md|toml|json|service))(?:[:#][\w.]*)?`{1,2}")
CITATION = re.compile(r"\bbehaviours(?:\.md)? ((?:§\d+(?:, )?)+)")
PAGE = re.compile(r"(?<![\w/.-])([a-z][a-z-]+\.md)\b")
ELSEWHERE = {"config.json", "config.yaml", "suite.log", "report.json", "ginkgo/report.json", "config.toml"}
"""Files on a node that no repository holds."""


def text_of(page: Path) -> str:
    """A page without what stands in code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as MkDocs and code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "") for heading in headings]
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in plain}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    wrong = []
    for target in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if page.parent.name == "docs" and path in ("contributing.md", "changelog.md"):
            file = ROOT / path.upper().replace(".MD", ".md")
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            wrong.append(target)
    assert wrong == []


def test_every_page_is_in_the_menu_once() -> None:
    menu = list(_pages_of(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(menu) == sorted(set(menu))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert set(menu) - {"contributing.md", "changelog.md"} == pages


def _pages_of(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for one in entry.values() if isinstance(entry, dict) else entry:
            yield from _pages_of(one)


def alternatives(mention: str) -> Iterator[str]:
    """`a/{b,c}.py` is two files."""
    if match := re.search(r"\{([^{}]*)\}", mention):
        for choice in match[1].split(","):
            yield from alternatives(mention[: match.start()] + choice.strip() + mention[match.end() :])
    else:
        yield mention


@cache
def files() -> tuple[str, ...]:
    """Every file of the repository, with a slash before its path."""
    skipped = {".venv", ".git", "build", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    tops = [path for path in ROOT.iterdir() if path.name not in skipped]
    found = [path for top in tops for path in ([top] if top.is_file() else top.rglob("*"))]
    return tuple(f"/{path.relative_to(ROOT)}" for path in found)


@cache
def exists(mention: str) -> bool:
    """A path may begin anywhere: pages and modules name files of their own room without it."""
    if mention in ELSEWHERE or mention.startswith("/"):
        return True
    if "*" in mention:
        return any(fnmatch(path, f"*/{mention}") for path in files())
    return any(path.endswith(f"/{mention}") for path in files())


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_files_that_a_page_mentions_exist(page: Path) -> None:
    mentions = [one for mention in MENTION.findall(text_of(page)) for one in alternatives(mention)]
    assert [one for one in mentions if not exists(one)] == []


def lines_of_sources() -> Iterator[tuple[str, str]]:
    """Each line of the code in which a file can be named, with its place."""
    for source in SOURCES:
        if GENERATED not in source.parts and source != Path(__file__):
            for number, line in enumerate(source.read_text().splitlines(), 1):
                if ".py" in line or ".md" in line or "§" in line:
                    yield f"{relative(source)}:{number}", line


def test_files_that_docstrings_and_comments_mention_exist() -> None:
    named = [
        (where, one) for where, line in lines_of_sources() for m in MENTION.findall(line) for one in alternatives(m)
    ]
    assert [f"{where}: {one}" for where, one in named if not exists(one)] == []


def test_citations_name_sections_and_pages_that_the_repository_holds() -> None:
    data = ROOT / "tests" / "data"
    sections = {path.name[:2].lstrip("0") or "0" for path in (data / "behaviours").rglob("[0-9][0-9]-*.md")}
    pages = {path.name for path in (*PAGES, *(data / "upstream").iterdir())} | {
        "behaviours.md",
        "contributing.md",
        "changelog.md",
    }
    wrong = []
    for where, line in lines_of_sources():
        cited = [number for named in CITATION.findall(line) for number in re.findall(r"\d+", named)]
        wrong += [f"{where}: §{number}" for number in cited if number not in sections]
        wrong += [f"{where}: {page}" for page in PAGE.findall(line) if page not in pages]
    assert wrong == []
