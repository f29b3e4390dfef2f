"""axe-core: finds faults of accessibility in a page. From npm."""

from __future__ import annotations

from typing import Any

from tests.browser.npm import npm_package

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def axe_source() -> str:
    """The script, installed if it is not there yet. Skips without npm."""
    return (npm_package("axe-core", "ACCESSIBILITY") / "axe.min.js").read_text()


def faults(page: Any, source: str) -> list[str]:
    """What axe finds: rule, and the elements it is about. The page's context must bypass the policy."""
    page.evaluate(source)
    result = page.evaluate("rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", RULES)
    return [
        f"{one['id']}: {', '.join(node['html'][:120] for node in one['nodes'][:3])}" for one in result["violations"]
    ]
