"""The object against the list of all fields of 1.34 (tests/data/config-fields.json)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from glasslet.config.defaults import EVICTION_HARD, KEEPS_ZERO, with_defaults
from glasslet.config.feature_gates import FeatureGates
from glasslet.config.kubelet_configuration import KubeletConfiguration, to_plain
from glasslet.config.schema import build, check_types, fields_of

ROWS = json.loads((Path(__file__).parents[2] / "data" / "config-fields.json").read_text())["rows"]
NO_GATES = FeatureGates()
EXAMPLES = {
    "bool": True,
    "string": "x",
    "int32": 3,
    "int64": 4,
    "uint32": 5,
    "float64": 0.5,
    "duration": "3s",
    "enum": "x",
    "[]string": ["x"],
    "[]string (set)": ["x"],
    "map[string]string": {"a": "b"},
    "map[string]bool": {"a": True},
    "map[string][]string": {"a": ["b"]},
    "quantity": "1Ki",
    "ResourceList": {"memory": "1Gi"},
    "[]object": [],
    "[]{filePattern,verbosity}": [{"filePattern": "a", "verbosity": 1}],
    "[]Taint": [{"key": "a", "effect": "NoSchedule"}],
}


def tree_with(path: str, value: object) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for step in reversed(path.split(".")):
        tree = {step.removesuffix("[]"): [value]} if step.endswith("[]") else {step: value}
        value = tree
    return tree


def test_every_field_of_the_object_is_on_the_list_and_every_field_of_the_list_in_the_object() -> None:
    def names(kind: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
        for name, declared in fields_of(kind).items():
            item = declared.__args__[0] if getattr(declared, "__origin__", None) is list else declared
            mark = "[]" if item is not declared else ""
            if hasattr(item, "__struct_fields__") and item.__name__ not in ("Taint", "VModuleItem"):
                if mark:
                    yield prefix + name
                yield from names(item, f"{prefix}{name}{mark}.")
            else:
                yield prefix + name

    assert sorted(names(KubeletConfiguration)) == sorted(row["field"] for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["field"])
def test_the_default_of_a_field_is_upstreams(row: dict[str, Any]) -> None:
    value: Any = with_defaults({}, NO_GATES)
    if row["field"] == "evictionHard":
        value = {"evictionHard": EVICTION_HARD}
    for step in row["field"].split("."):
        value = None if step.endswith("[]") or value is None else value.get(step)
    wanted = row["default"] if "[]" not in row["field"] else None
    assert (value or None) == (wanted or None)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["field"])
def test_a_value_of_the_right_type_is_taken_and_one_of_a_wrong_type_is_named(row: dict[str, Any]) -> None:
    field = row["field"]
    good = check_types(tree_with(field, EXAMPLES[row["type"]]))
    assert (good.mismatches, good.unknown) == ([], [])
    build(good.tree)
    wrong = check_types(tree_with(field, [[1]]))
    assert [field.split(".")[-1] in item.path for item in wrong.mismatches] == [True]


ZEROS = {"int32": 0, "int64": 0, "duration": "0s", "string": "", "enum": "", "float64": 0.0}
WITH_ZERO = [
    row for row in ROWS if row["default"] and row["type"] in ZEROS and row["field"] not in ("apiVersion", "kind")
]


@pytest.mark.parametrize("row", WITH_ZERO, ids=lambda row: row["field"])
def test_zero_counts_as_unset_but_for_the_fields_that_keep_it(row: dict[str, Any]) -> None:
    # config-fields.md: "zero values (0, "", 0s) of plain fields count as unset and receive the default"
    zero = ZEROS[row["type"]]
    value = with_defaults(tree_with(row["field"], zero), NO_GATES)
    for step in row["field"].split("."):
        value = value[step]
    assert value == (zero if row["field"] in KEEPS_ZERO else row["default"])


def test_false_is_kept_for_booleans_that_default_to_true() -> None:
    off = [row["field"] for row in ROWS if row["default"] is True]
    full = with_defaults({name: False for name in off if "." not in name}, NO_GATES)
    assert not any(full[name] for name in off if "." not in name)


def test_an_explicitly_empty_resolv_conf_stays_empty() -> None:
    assert with_defaults({"resolvConf": ""}, NO_GATES)["resolvConf"] == ""


def test_report_frequency_follows_an_explicit_update_frequency() -> None:
    full = with_defaults({"nodeStatusUpdateFrequency": "20s"}, NO_GATES)
    assert full["nodeStatusReportFrequency"] == "20s"


@pytest.mark.parametrize(("pulls", "serial"), [(None, True), (1, True), (2, False), (9, False)])
def test_pulls_are_serial_unless_several_are_allowed_at_once(pulls: int | None, serial: bool) -> None:
    tree = {} if pulls is None else {"maxParallelImagePulls": pulls}
    assert with_defaults(tree, NO_GATES)["serializeImagePulls"] is serial


def test_gates_add_their_defaults() -> None:
    on = FeatureGates({"KubeletCrashLoopBackOffMax": True, "KubeletEnsureSecretPulledImages": True})
    full = with_defaults({}, on)
    assert full["crashLoopBackOff"] == {"maxContainerRestartPeriod": "5m0s"}
    assert full["imagePullCredentialsVerificationPolicy"] == "NeverVerifyPreloadedImages"


def test_any_negative_process_limit_becomes_minus_one() -> None:
    assert with_defaults({"podPidsLimit": -7}, NO_GATES)["podPidsLimit"] == -1


def test_an_unknown_field_is_named_with_its_path_and_the_nearest_name() -> None:
    checked = check_types({"authentication": {"anonymos": {}}, "maxpods": 3, "zzz": 1})
    assert [item.message for item in checked.unknown] == [
        "unknown field \"authentication.anonymos\", did you mean 'anonymous'?",
        "unknown field \"maxpods\", did you mean 'maxPods'?",
        'unknown field "zzz"',
    ]


def test_every_wrong_type_is_found_at_once() -> None:
    checked = check_types(
        {"maxPods": "3", "syncFrequency": 5, "featureGates": {"A": "yes"}, "logging": [], "port": 2**40}
    )
    assert [item.path[0] for item in checked.mismatches] == [
        "maxPods",
        "syncFrequency",
        "featureGates",
        "logging",
        "port",
    ]


def test_whole_floats_are_whole_numbers_and_bare_numbers_flush_in_nanoseconds() -> None:
    assert check_types({"maxPods": 5.0}).tree == {"maxPods": 5}
    built = build(check_types({"logging": {"flushFrequency": 5_000_000_000}}).tree)
    assert built.logging.flush_frequency == 5.0


def test_a_built_object_prints_as_the_file_that_made_it() -> None:
    tree = with_defaults({"maxPods": 7, "tracing": {"endpoint": "a:1"}, "syncFrequency": "90s"}, NO_GATES)
    plain = to_plain(build(tree))
    assert (plain["maxPods"], plain["tracing"]["endpoint"], plain["syncFrequency"]) == (7, "a:1", "1m30s")
