"""A skipped test says why; with CI=true in the environment it is a failure, unless it is skipped on purpose.

    pytest.skip("REAL CGROUP TESTS NOT RUN: they need root")        # a requirement of the tests: a failure in CI
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")     # the same
    pytest.skip(on_purpose("this kernel has no huge pages"))        # of the hardware, or of the variant under test

The rule holds for fixtures, markers and test bodies alike: a test cannot forget it.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

_ON_PURPOSE = "on purpose: "


def on_purpose(reason: str) -> str:
    """The reason of a skip that is right in CI, too."""
    return _ON_PURPOSE + reason


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Makes a failure of a skip in CI."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and os.environ.get("CI") == "true":
        file, line, reason = report.longrepr
        if _ON_PURPOSE not in reason:
            report.outcome = "failed"
            report.longrepr = f"{file}:{line}: this test must run in CI, but it was skipped: {reason}"
    return report
