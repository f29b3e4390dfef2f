"""axe-core: finds faults of accessibility in a page. From npm, in a cache folder outside of the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).with_name("package.json")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def axe_source() -> str:
    """The script, installed if it is not there yet. Skips without npm."""
    version = json.loads(PACKAGE.read_text())["dependencies"]["axe-core"]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "glasslet" / f"axe-core-{version}"
    script = cache / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("ACCESSIBILITY NOT TESTED: there is no npm to install axe-core")
        cache.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE, cache / "package.json")
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(command, cwd=cache, capture_output=True, text=True, timeout=120)
        if not script.exists():
            pytest.skip(f"ACCESSIBILITY NOT TESTED: npm does not install axe-core: {done.stderr[-300:]}")
    return script.read_text()


def faults(page: Any, source: str) -> list[str]:
    """What axe finds: rule, and the elements it is about. The page's context must bypass the policy."""
    page.evaluate(source)
    result = page.evaluate("rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", RULES)
    return [
        f"{one['id']}: {', '.join(node['html'][:120] for node in one['nodes'][:3])}" for one in result["violations"]
    ]
