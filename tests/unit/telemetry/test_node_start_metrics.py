"""How long the start of a node took."""

from __future__ import annotations

from prometheus_client.core import Metric

from glasslet.telemetry.metrics.node_start import NodeStartMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry


class Start:
    """A machine booted at 100 s and a process started at 130 s."""

    def __init__(self) -> None:
        self.now = 131.0
        self._gauges: dict[str, float] = {}
        self.registry = MetricRegistry()
        self.metrics = NodeStartMetrics(
            self.registry, now=lambda: self.now, booted=lambda: 100.0, started=lambda: 130.0
        )

    def shown(self) -> dict[str, float]:
        families: list[Metric] = list(self.registry._families.collect())
        return {
            sample.name.removeprefix("kubelet_node_startup_").removesuffix("duration_seconds"): sample.value
            for family in families
            for sample in family.samples
        }


def test_a_created_node_tells_each_part_of_its_start() -> None:
    start = Start()
    start.metrics.registering()
    start.now = 133.0
    start.metrics.registering()
    start.metrics.created()
    start.now = 140.0
    start.metrics.ready()
    start.now = 999.0
    start.metrics.ready()
    assert start.shown() == {
        "": 40.0,
        "pre_kubelet_": 30.0,
        "pre_registration_": 1.0,
        "registration_": 2.0,
        "post_registration_": 7.0,
    }


def test_a_node_that_existed_tells_nothing() -> None:
    # metrics.md: "set when this process creates the Node; stays 0 when the Node existed"
    start = Start()
    start.metrics.registering()
    start.metrics.ready()
    assert set(start.shown().values()) == {0.0}
