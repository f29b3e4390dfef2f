"""MkDocs hook: CONTRIBUTING.md and CHANGELOG.md of the repository's root are pages of the site as well."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def on_files(files: Any, config: Any) -> Any:
    """Adds the two pages; their links into docs/ become links between pages."""
    from mkdocs.structure.files import File

    for page, source in PAGES.items():
        text = re.sub(r"\]\(docs/", "](", (ROOT / source).read_text())
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links from pages to the two files lead to their pages."""
    for page, source in PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({page}")
    return markdown
