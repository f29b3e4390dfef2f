"""Metrics against the list of the Go kubelet's: names, types, labels, buckets, and the text form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import pytest

from glasslet.telemetry.metrics.catalog import Metrics
from glasslet.telemetry.metrics.pods import rejection_label
from glasslet.telemetry.metrics.registry import MetricRegistry, go_number
from glasslet.telemetry.metrics.runtime import operation_type
from tests.builders.metrics import POD, moved_metrics

T = TypeVar("T")
ROWS: list[dict[str, Any]] = json.loads(Path("tests/data/metrics.json").read_text())["rows"]


@pytest.fixture
def metrics() -> Metrics:
    """Every family moved once."""
    return moved_metrics()


def scrape(registry: MetricRegistry) -> dict[str, dict[str, Any]]:
    """Family -> type, label names, bucket bounds."""
    families: dict[str, dict[str, Any]] = {}
    for line in registry.expose().decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            families[name] = {"type": kind, "labels": set(), "buckets": []}
        elif not line.startswith("#"):
            shown, _, _ = line.rpartition(" ")
            sample, _, inner = shown.partition("{")
            family = next(f for f in (sample, sample.rpartition("_")[0]) if f in families)
            for label in filter(None, inner.rstrip("}").split('",')):
                key, _, value = label.partition("=")
                if key == "le":
                    families[family]["buckets"].append(value.strip('"'))
                else:
                    families[family]["labels"].add(key)
    return families


def theirs(found: dict[str, T]) -> dict[str, T]:
    """Without what only this kubelet has, which says so in its name."""
    return {name: value for name, value in found.items() if not name.startswith("glasslet_")}


def reference(endpoint: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in ROWS if row["endpoint"] == endpoint}


@pytest.mark.parametrize(
    ("endpoint", "registry"),
    [("/metrics", "registry"), ("/metrics/probes", "probe_registry"), ("/metrics/slis", "sli_registry")],
)
def test_every_family_is_one_of_the_go_kubelets(metrics: Metrics, endpoint: str, registry: str) -> None:
    known = reference(endpoint)
    for name, family in theirs(scrape(getattr(metrics, registry))).items():
        assert name in known
        row = known[name]
        assert family["type"] == row["type"], name
        assert family["labels"] == set(row["labels"]), name
        if row["buckets"] is not None:
            bounds = [go_number(float(bound)) for bound in row["buckets"]]
            assert list(dict.fromkeys(family["buckets"])) == [*bounds, "+Inf"], name


def test_stability_is_the_reference_one(metrics: Metrics) -> None:
    known = reference("/metrics")
    declared = metrics.registry.declared
    assert {name: known[name]["stability"] for name in theirs(declared)} == theirs(declared)


def test_claimed_families_are_all_there(metrics: Metrics) -> None:
    claimed = {
        *("kubelet_runtime_operations_total", "kubelet_runtime_operations_errors_total", "kubelet_running_pods"),
        *("kubelet_runtime_operations_duration_seconds", "kubelet_pleg_relist_duration_seconds"),
        *("kubelet_pleg_relist_interval_seconds", "kubelet_pleg_last_seen_seconds", "kubelet_pleg_discard_events"),
        *("kubelet_pod_start_duration_seconds", "kubelet_pod_start_sli_duration_seconds", "kubelet_node_name"),
        *("kubelet_pod_start_total_duration_seconds", "kubelet_pod_worker_duration_seconds", "kubernetes_build_info"),
        *("kubelet_pod_worker_start_duration_seconds", "kubelet_running_containers", "kubelet_desired_pods"),
        *("kubelet_http_requests_total", "kubelet_http_requests_duration_seconds", "kubelet_http_inflight_requests"),
        *("kubelet_started_pods_total", "kubelet_started_containers_total", "kubelet_working_pods"),
        *("storage_operation_duration_seconds", "volume_operation_total_seconds", "volume_manager_total_volumes"),
        *("plugin_manager_total_plugins", "kubelet_cri_losing_support", "kubelet_started_user_namespaced_pods_total"),
        *("kubernetes_feature_enabled", "process_cpu_seconds_total", "process_resident_memory_bytes"),
        *("process_start_time_seconds", "process_open_fds", "process_max_fds", "kubelet_image_pull_duration_seconds"),
    }
    assert claimed <= set(scrape(metrics.registry))


def test_start_histograms_are_hidden_before_the_first_pod() -> None:
    # metrics.md: "Histograms declared with an empty label list ... also wait for the first observation."
    names = scrape(Metrics().registry)
    assert "kubelet_pod_start_sli_duration_seconds" not in names
    assert "kubelet_pod_start_duration_seconds" in names


def test_all_fifteen_worker_states_are_always_present(metrics: Metrics) -> None:
    text = metrics.registry.expose().decode()
    assert text.count("\nkubelet_working_pods{") == 15


def test_help_begins_with_the_stability(metrics: Metrics) -> None:
    for line in metrics.registry.expose().decode().splitlines():
        if line.startswith("# HELP kube"):
            assert line.split(" ", 3)[3].startswith(("[ALPHA] ", "[BETA] ", "[INTERNAL] "))


def test_probe_series_go_away_with_the_probe_worker(metrics: Metrics) -> None:
    metrics.probes.forget("Liveness", POD, "main")
    assert set(scrape(metrics.probe_registry)) == {"process_start_time_seconds"}


def test_sli_series_are_forgotten_on_reset(metrics: Metrics) -> None:
    metrics.health.reset()
    assert set(scrape(metrics.sli_registry)) == {"process_start_time_seconds"}


def test_label_values_are_escaped() -> None:
    registry = MetricRegistry()
    registry.gauge("g", "text", ("x",)).labels('a"b\\c\nd').set(1)
    assert r'g{x="a\"b\\c\nd"} 1' in registry.expose().decode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1.0, "1"),
        (0.005, "0.005"),
        (2.5, "2.5"),
        (-3.5, "-3.5"),
        (100000, "100000"),
        (1e6, "1e+06"),
        (1048576, "1.048576e+06"),
        (2.592e6, "2.592e+06"),
        (1.5e-8, "1.5e-08"),
        (0.0001, "0.0001"),
        (9.999999999999999e-06, "9.999999999999999e-06"),
        (float("inf"), "+Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_look_like_go_wrote_them(value: float, text: str) -> None:
    assert go_number(value) == text


@pytest.mark.parametrize(
    ("verb", "label"),
    [
        ("Version", "version"),
        ("RunPodSandbox", "run_podsandbox"),
        ("ListPodSandbox", "list_podsandbox"),
        ("PodSandboxStatus", "podsandbox_status"),
        ("UpdateContainerResources", "update_container"),
        ("ImageFsInfo", "image_fs_info"),
        ("ListPodSandboxStats", "list_podsandbox_stats"),
        ("ExecSync", "exec_sync"),
    ],
)
def test_cri_calls_are_labelled_as_upstream(verb: str, label: str) -> None:
    assert operation_type(verb) == label


@pytest.mark.parametrize(
    ("reason", "label"),
    [("OutOfcpu", "OutOfcpu"), ("OutOfnvidia.com/gpu", "OutOfExtendedResources"), ("NodeAffinity", "Other")],
)
def test_rejections_share_labels_so_that_series_stay_few(reason: str, label: str) -> None:
    assert rejection_label(reason) == label
