"""Every metric of the Go kubelet is served, or is on the list of those that are not, with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.builders.metrics import complete_metrics, served_names

DATA = Path(__file__).parents[2] / "data"
ABSENT: dict[str, list[str]] = yaml.safe_load((DATA / "absent_metrics.yaml").read_text())
SERVED = served_names(complete_metrics().registry)
THEIRS = {
    row["name"] for row in json.loads((DATA / "metrics.json").read_text())["rows"] if row["endpoint"] == "/metrics"
}


def absent() -> set[str]:
    return {name for names in ABSENT.values() for name in names}


def test_what_is_not_served_is_on_the_list() -> None:
    assert THEIRS - SERVED - absent() == set()


def test_what_is_served_is_not_on_the_list() -> None:
    assert absent() & SERVED == set()


def test_the_list_names_metrics_of_the_go_kubelet_each_once() -> None:
    assert absent() <= THEIRS
    assert sum(map(len, ABSENT.values())) == len(absent())
