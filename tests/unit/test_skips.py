"""With CI=true a test that lacks something fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest
from tests.skips import on_purpose

@pytest.fixture
def lacking():
    pytest.skip("needs root")

def test_body():
    pytest.skip("needs root")

def test_fixture(lacking):
    pass

@pytest.mark.skipif(True, reason="needs root")
def test_marker():
    pass

@pytest.mark.skipif(True, reason=on_purpose("no such disk"))
def test_purpose():
    pass

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert False
"""
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", "1 failed, 1 skipped, 1 xfailed, 2 errors"), ("", "4 skipped, 1 xfailed")]
)
def test_a_skip_is_a_failure_in_ci_unless_on_purpose(ci: str, outcome: str, tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.skips", "--rootdir", str(tmp_path), str(file)],
        cwd=REPOSITORY,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    summary = done.stdout.splitlines()[-1]
    assert all(part in summary for part in outcome.split(", ")), done.stdout
