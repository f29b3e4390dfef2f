"""Packages of npm that tests of the page need, in a cache folder outside of the repository."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGE = Path(__file__).with_name("package.json")


def npm_package(name: str, lacking: str) -> Path:
    """The folder of a package that package.json names, installed if it is not there yet. Skips without npm; `lacking`:
    what is then not tested."""
    versions = hashlib.sha256(PACKAGE.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "glasslet" / f"npm-{versions}"
    folder = cache / "node_modules" / name
    if not folder.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip(f"{lacking} NOT TESTED: there is no npm to install {name}")
        cache.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE, cache / "package.json")
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(command, cwd=cache, capture_output=True, text=True, timeout=240)
        if not folder.exists():
            pytest.skip(f"{lacking} NOT TESTED: npm does not install {name}: {done.stderr[-300:]}")
    return folder
