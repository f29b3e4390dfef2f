"""What is told of the suite's tests."""

from __future__ import annotations

from typing import Any

from tests.conformance.report import Progress, Row, line_of, rows, summary


def _spec(state: str, name: str = "works", *, kind: str = "It", message: str = "", seconds: float = 1.0) -> Any:
    failure = {"Failure": {"Message": message}} if message else {}
    return {
        "LeafNodeType": kind,
        "LeafNodeText": name,
        "ContainerHierarchyTexts": ["[sig-node] Pods"],
        "State": state,
        "RunTime": int(seconds * 1e9),
        **failure,
    }


def test_a_report_tells_every_test_that_ran_by_name() -> None:
    report = [{"SpecReports": [_spec("passed", "zips"), _spec("failed", "adds", message="no"), _spec("timedout")]}]
    assert [(row.outcome, row.name) for row in rows(report)] == [
        ("FAIL", "[sig-node] Pods adds"),
        ("FAIL", "[sig-node] Pods works"),
        ("PASS", "[sig-node] Pods zips"),
    ]


def test_tests_that_the_filter_left_out_are_no_rows() -> None:
    assert rows([{"SpecReports": [_spec("skipped"), _spec("pending"), _spec("skipped", message="needs a GPU")]}]) == [
        Row(outcome="SKIP", name="[sig-node] Pods works", seconds=1.0, reason="needs a GPU")
    ]


def test_a_failure_outside_of_any_test_is_a_row_and_its_success_is_not() -> None:
    setup = {**_spec("failed", "", kind="SynchronizedBeforeSuite", message="no node"), "ContainerHierarchyTexts": None}
    found = rows([{"SpecReports": [setup, _spec("passed", "", kind="ReportAfterSuite")]}])
    assert [(row.outcome, row.name, row.reason) for row in found] == [("FAIL", "[SynchronizedBeforeSuite]", "no node")]


def test_output_gives_a_row_per_test_that_ended() -> None:
    output = """\
------------------------------
SSS• [5.123 seconds]
[sig-node] Pods should start [NodeConformance] [Conformance] [sig-node, NodeConformance, Conformance]
k8s.io/kubernetes@v1.34.10/test/e2e/common/node/pods.go:12

  STEP: taking [1.0 seconds] @ 11/21/26
------------------------------
• [FAILED] [0.050 seconds]
[sig-node] Pods [It] should stop [NodeConformance] [sig-node, NodeConformance]
------------------------------
S [SKIPPED] [0.001 seconds]
[sig-node] AppArmor should load
"""
    progress = Progress()
    assert [row for line in output.splitlines(keepends=True) if (row := progress.read(line))] == [
        Row(outcome="PASS", name="[sig-node] Pods should start [NodeConformance] [Conformance]", seconds=5.123),
        Row(outcome="FAIL", name="[sig-node] Pods should stop [NodeConformance]", seconds=0.05),
        Row(outcome="SKIP", name="[sig-node] AppArmor should load", seconds=0.001),
    ]


def test_a_row_is_one_line() -> None:
    assert line_of(Row(outcome="PASS", name="Pods start", seconds=5.123)) == "PASS     5.1 s  Pods start"


def test_the_summary_counts_and_says_what_failed_and_why() -> None:
    found = [Row(outcome="PASS", name="a", seconds=1), Row(outcome="FAIL", name="b", seconds=1, reason="one\n  two")]
    assert summary(found) == "2 tests: 1 passed, 1 failed, 0 skipped\nFAIL b\n     one two"
