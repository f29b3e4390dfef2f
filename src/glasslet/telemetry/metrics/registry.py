"""A registry of metrics and its text form.

prometheus_client counts; names and text are ours, because the Go kubelet has counters whose names do not end in
`_total` (`kubelet_preemptions`), histograms that stay hidden until their first observation, and no `_created` series.
"""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
DEF_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds where the reference says DefBuckets."""


class MetricSource(Protocol):
    """Gives families at scrape time. Their names are written as they are."""

    def collect(self) -> Iterable[Metric]: ...


def buckets_by(histogram: Histogram, label: str) -> dict[str, tuple[tuple[float, float], ...]]:
    """Upper bounds and the observations up to each, by the value of one label; other labels are added up."""
    found: dict[str, dict[float, float]] = {}
    for metric in histogram.collect():
        for sample in metric.samples:
            if sample.name.endswith("_bucket"):
                counts = found.setdefault(sample.labels[label], {})
                bound = float(sample.labels["le"])
                counts[bound] = counts.get(bound, 0.0) + sample.value
    return {value: tuple(sorted(counts.items())) for value, counts in found.items()}


class MetricRegistry:
    """Declares metrics and writes them out. One per endpoint (`/metrics`, `/metrics/probes`, `/metrics/slis`)."""

    def __init__(self) -> None:
        self._families = CollectorRegistry(auto_describe=False)
        self._exact_counters: set[str] = set()
        self._hidden_until_observed: set[str] = set()
        self._collectors: list[MetricSource] = []
        self.declared: dict[str, str] = {}
        """Name -> stability level of every declared metric."""

    def counter(self, name: str, text: str, labels: Sequence[str] = (), *, stability: str = "ALPHA") -> Counter:
        """A counter called exactly `name`, with or without `_total`."""
        if not name.endswith("_total"):
            self._exact_counters.add(name)
        return Counter(name, self._help(name, text, stability), labels, registry=self._families)

    def gauge(self, name: str, text: str, labels: Sequence[str] = (), *, stability: str = "ALPHA") -> Gauge:
        """A gauge."""
        return Gauge(name, self._help(name, text, stability), labels, registry=self._families)

    def histogram(
        self,
        name: str,
        text: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float] = DEF_BUCKETS,
        hidden_until_observed: bool = False,
    ) -> Histogram:
        """A histogram with these upper bounds (without +Inf)."""
        if hidden_until_observed:
            self._hidden_until_observed.add(name)
        return Histogram(name, self._help(name, text, "ALPHA"), labels, buckets=buckets, registry=self._families)

    def collect_from(self, collector: MetricSource) -> None:
        """Adds families that are only known at scrape time."""
        self._collectors.append(collector)

    def tally(self) -> dict[str, int]:
        """How many metrics were declared, by stability level."""
        return dict(Tally(self.declared.values()))

    def expose(self) -> bytes:
        """All families by name, in the text format 0.0.4."""
        families = [(self._name_of(metric), metric) for metric in self._families.collect()]
        for collector in self._collectors:
            families.extend((metric.name, metric) for metric in collector.collect())
        out: list[str] = []
        for name, metric in sorted(families, key=lambda pair: pair[0]):
            if name not in self._hidden_until_observed or _observations(metric):
                _write(out, name, metric)
        return "".join(out).encode()

    def _help(self, name: str, text: str, stability: str) -> str:
        self.declared[name] = stability
        return f"[{stability}] {text}"

    def _name_of(self, metric: Metric) -> str:
        if metric.type != "counter" or metric.name in self._exact_counters:
            return metric.name
        return metric.name + "_total"


def _observations(metric: Metric) -> float:
    return sum(s.value for s in metric.samples if s.name.endswith("_count"))


def _write(out: list[str], name: str, metric: Metric) -> None:
    samples = [s for s in metric.samples if s.name != metric.name + "_created"]
    if not samples:
        return
    text = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    out.append(f"# HELP {name} {text}\n# TYPE {name} {metric.type}\n")
    for sample in samples:
        shown = name if metric.type in ("counter", "gauge") else sample.name
        out.append(f"{shown}{_labels(sample)} {go_number(sample.value)}\n")


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    pairs = (
        f'{key}="{go_number(float(value)) if key == "le" else _escaped(value)}"' for key, value in sample.labels.items()
    )
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@lru_cache(maxsize=4096)
def go_number(value: float) -> str:
    """A number as Go's text exposition writes it: shortest digits; an exponent below 1e-4 and from 1e6 on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) - 1 + exponent
    if value == 0 or -4 <= power < 6:
        return str(int(value)) if value == int(value) else repr(float(value))
    fraction = "".join(map(str, digits[1:]))
    mantissa = f"{digits[0]}.{fraction}" if fraction else str(digits[0])
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
