"""What is compared of two kubelets' answers about use."""

from __future__ import annotations

from tests.machine.figures import kinds, paths, series

PAGE = """\
# HELP container_threads Number of threads
# TYPE container_threads gauge
container_threads{container="main",id="/kubepods.slice/x",name="c0ffee",namespace="default",pod="web"} 3 1700000000000
container_threads{container="",id="/system.slice/cron.service",name="",namespace="",pod=""} 1
container_threads{container="",id="/",name="",namespace="",pod=""} 99
container_threads{container="main",id="/y",name="f00",namespace="default",pod="other"} 1
node_cpu_usage_seconds_total 4.5
"""
LABELS = frozenset({"container", "id", "name", "namespace", "pod"})


def test_series_of_the_pods_and_of_the_node_are_compared_and_no_others() -> None:
    assert series(PAGE, frozenset({"web"})) == {
        ("container_threads", LABELS, "web/main"),
        ("container_threads", LABELS, "/"),
        ("node_cpu_usage_seconds_total", frozenset(), "node"),
    }


def test_the_type_of_a_metric_is_that_of_its_comment() -> None:
    assert kinds(PAGE) == {"container_threads": "gauge"}


def test_fields_of_a_summary_are_named_by_their_way_and_numbers_do_not_count() -> None:
    summary = {
        "node": {"cpu": {"usageNanoCores": 7}},
        "pods": [
            {"podRef": {"name": "web"}, "containers": [{"name": "main", "memory": {"rssBytes": 1}}]},
            {"podRef": {"name": "other"}, "memory": {"rssBytes": 1}},
        ],
    }
    assert paths(summary, frozenset({"web"})) == {
        ".node.cpu.usageNanoCores",
        ".pods[web].podRef.name",
        ".pods[web].containers[main].name",
        ".pods[web].containers[main].memory.rssBytes",
    }
