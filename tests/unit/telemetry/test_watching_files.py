"""The alert rules and the dashboard that come with glasslet, against the metrics that the agent serves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from glasslet.record.stations import Station, WaitKind
from glasslet.record.store import Record
from glasslet.stats.pages.container_families import families
from glasslet.telemetry.metrics.catalog import Metrics
from tests.builders.metrics import complete_metrics, served_names
from tests.fakes.prometheus import CONTRIB, dashboard_queries, rule_queries

OTHERS = {"kube_node_status_capacity", "up"}
"""Of kube-state-metrics, and Prometheus' own."""
_METRIC = re.compile(
    r"\b(?:glasslet|kube|kubelet|kubernetes|container|process|rest_client|storage|volume)_[a-z0-9_]+\b|\bup\b"
)
_NO_METRICS = re.compile(r"\{[^}]*\}|\"[^\"]*\"|\b(?:by|on|group_left) \([^)]*\)")


def served() -> set[str]:
    return served_names(complete_metrics().registry) | {family.name for family in families(psi=True)}


def named(expression: str) -> set[str]:
    """Metrics of an expression, by family; not what stands in selectors, quotes and lists of labels."""
    names = _METRIC.findall(_NO_METRICS.sub("", expression))
    return {re.sub(r"_(?:bucket|sum|count)$", "", name) if name not in served() else name for name in names}


@pytest.mark.parametrize(("title", "expressions"), [*dashboard_queries().items(), *rule_queries().items()])
def test_every_panel_and_alert_asks_for_metrics_that_the_agent_serves(title: str, expressions: list[str]) -> None:
    for expression in expressions:
        assert named(expression)
        assert named(expression) - OTHERS <= served(), title


def test_labels_that_panels_and_alerts_sum_by_are_labels_of_their_metrics() -> None:
    known = {"instance", "job", "le", "node", "namespace", "pod", "persistentvolumeclaim"}
    for row in json.loads(Path("tests/data/metrics.json").read_text())["rows"]:
        known |= set(row["labels"])
    known |= {"kind", "station", "about"}
    for expressions in [*dashboard_queries().values(), *rule_queries().values()]:
        for labels in re.findall(r"by \(([^)]*)\)", " ".join(expressions)):
            assert {label.strip() for label in labels.split(",")} <= known


def test_the_dashboard_shows_every_metric_of_glasslets_own() -> None:
    shown = set().union(*(named(one) for expressions in dashboard_queries().values() for one in expressions))
    assert {name for name in served() if name.startswith("glasslet_")} <= shown


def test_each_panel_says_its_unit_and_has_its_own_place() -> None:
    board = json.loads((CONTRIB / "grafana" / "glasslet.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert all(x < 24 for x, _ in cells)
        taken |= cells
        assert panel["type"] == "row" or panel["fieldConfig"]["defaults"]["unit"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_every_kind_of_wait_and_every_station_has_a_series_before_anything_happened() -> None:
    metrics = Metrics()
    metrics.count_pod_times(Record().pod_times, kinds=WaitKind, stations=Station)
    page = metrics.registry.expose().decode()
    for kind in WaitKind:
        assert f'glasslet_waits{{kind="{kind}"}} 0\n' in page
        assert f'glasslet_wait_seconds_total{{kind="{kind}"}} 0\n' in page
    for station in Station:
        assert f'glasslet_station_passes_total{{station="{station}"}} 0\n' in page
