"""TypeScript reads the page's modules as they are, and finds no fault in their types."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser.npm import npm_package

PAGE = Path(__file__).parents[2] / "src" / "glasslet" / "page"
OPTIONS = {
    "checkJs": True,
    "allowJs": True,
    "noEmit": True,
    "target": "es2023",
    "module": "esnext",
    "moduleResolution": "bundler",
    "lib": ["es2023", "dom", "dom.iterable"],
    "strict": False,
    "types": [],
}


def faults(entry: Path, folder: Path) -> str:
    if shutil.which("node") is None:
        pytest.skip("TYPES OF THE PAGE NOT TESTED: there is no node")
    compiler = npm_package("typescript", "TYPES OF THE PAGE") / "bin" / "tsc"
    project = folder / "tsconfig.json"
    project.write_text(json.dumps({"compilerOptions": OPTIONS, "files": [str(entry)]}))
    return subprocess.run(
        [shutil.which("node") or "node", str(compiler), "-p", str(project)], capture_output=True, text=True, timeout=120
    ).stdout


def test_the_modules_of_the_page_fit_each_other(tmp_path: Path) -> None:
    assert faults(PAGE / "page.js", tmp_path) == ""


def test_a_planted_fault_is_found(tmp_path: Path) -> None:
    for module in PAGE.glob("*.js"):
        shutil.copy(module, tmp_path)
    words = tmp_path / "words.js"
    words.write_text(words.read_text() + "\nduration(1).nothing();\n")
    assert "Property 'nothing' does not exist" in faults(tmp_path / "page.js", tmp_path)
