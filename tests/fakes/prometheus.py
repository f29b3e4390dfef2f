"""A real Prometheus, and promtool, on loopback: built once by `tests/go/prometheus/build`.

Building takes minutes, so it has a lane of its own: `scripts/test-watching`. Without built programs, tests of it skip
and say so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.skips import on_purpose

SOURCES = Path(__file__).resolve().parents[1] / "go" / "prometheus"
CONTRIB = Path(__file__).resolve().parents[2] / "contrib"
RULES = CONTRIB / "prometheus" / "glasslet.rules.yaml"
WATCHING = "GLASSLET_TEST_WATCHING"
"""In the environment: the lane is asked for, a missing program is built or fails the test."""
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glasslet"


def folder_of_programs() -> Path:
    """Where the programs of the version in go.mod are, once they are built."""
    version = re.findall(r"prometheus/prometheus (v\S+)", (SOURCES / "go.mod").read_text())[0]
    return _CACHE / f"prometheus-{version}"


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`. Skips the test where there is none and none is asked for."""
    path = folder_of_programs() / name
    if not path.exists():
        if WATCHING not in os.environ:
            pytest.skip(on_purpose(f"TESTS WITH PROMETHEUS NOT RUN: {path} is not built (scripts/test-watching does)"))
        build()
    return str(path)


def build() -> None:
    """Makes the programs where they are not there yet."""
    if not folder_of_programs().exists():
        if shutil.which("go") is None:
            pytest.fail(f"{folder_of_programs()} is not built and Go is not installed")
        subprocess.run([str(SOURCES / "build"), str(folder_of_programs())], check=True, stdout=subprocess.DEVNULL)


class Prometheus:
    """One process with this configuration."""

    def __init__(self, folder: Path, configuration: dict[str, Any], port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "prometheus.log"
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(configuration))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(program("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={folder / 'tsdb'}"),
                    *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"),
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def stop(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait(60)

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API. Raises OSError while it does not answer; a refused query fails the test."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}{query}", timeout=30) as answer:
                return json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each series now."""
        return [(one["metric"], float(one["value"][1])) for one in self.ask("query", query=expression)["result"]]

    def wait_for(self, expression: str, what: Callable[[list[tuple[dict[str, str], float]]], object] = bool) -> Any:
        """Asks until the answer is as wanted; the answer then."""
        deadline = time.monotonic() + 120
        found: list[tuple[dict[str, str], float]] = []
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self._log.read_text()
            try:
                found = self.query(expression)
            except OSError:  # it starts
                found = []
            else:
                if what(found):
                    return found
            time.sleep(0.3)
        raise AssertionError(f"{expression} not as wanted: {found}; {self.targets()}\n{self._log.read_text()[-2000:]}")

    def targets(self) -> dict[str, str]:
        """Scraped URLs, and the error of the last scrape ("" for none)."""
        return {one["scrapeUrl"]: one["lastError"] for one in self.ask("targets")["activeTargets"]}


def dashboard_queries() -> dict[str, list[str]]:
    """Title of each panel of contrib/grafana -> its expressions, variables and all."""
    board = json.loads((CONTRIB / "grafana" / "glasslet.json").read_text())
    return {p["title"]: [t["expr"] for t in p["targets"]] for p in board["panels"] if p["type"] != "row"}


def rule_queries() -> dict[str, list[str]]:
    """Name of each alert -> its expressions."""
    found: dict[str, list[str]] = {}
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            found.setdefault(rule["alert"], []).append(rule["expr"])
    return found
