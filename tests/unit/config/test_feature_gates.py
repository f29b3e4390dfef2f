"""Gates against the list of all names that the 1.34 kubelet knows (tests/data/feature-gates.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from glasslet.config.feature_gates import FeatureGates, apply_gates
from glasslet.config.gate_table import GATES

DATA = json.loads((Path(__file__).parents[2] / "data" / "feature-gates.json").read_text())
ROWS = {row["name"]: row for row in DATA["rows"] + DATA["other_known"]}


def test_exactly_the_gates_of_the_list_are_known() -> None:
    assert set(GATES) == set(ROWS)
    assert len(GATES) == 208


@pytest.mark.parametrize("name", ROWS)
def test_a_gate_has_the_stage_default_and_lock_of_the_list(name: str) -> None:
    row, spec = ROWS[name], GATES[name]
    assert (spec.stage.lower(), spec.default, spec.locked) == (row["stage"].lower(), row["default"], row["locked"])
    assert FeatureGates().enabled(name) is row["default"]


def test_an_unknown_gate_is_upstreams_error_with_a_hint() -> None:
    findings = apply_gates({"Nonsense": True, "nodeswap": True, "PodsAPI": True})[1]
    assert [finding.message for finding in findings] == [
        "unrecognized feature gate: Nonsense",
        "unrecognized feature gate: nodeswap, did you mean NodeSwap?",
        "unrecognized feature gate: PodsAPI (it is known from 1.36 on)",
    ]
    assert all(finding.error for finding in findings)


def test_a_locked_gate_accepts_only_its_default() -> None:
    gates, (finding,) = apply_gates({"ComponentSLIs": False})
    assert finding.message == "cannot set feature gate ComponentSLIs to false, feature is locked to true"
    assert gates.enabled("ComponentSLIs")
    assert [finding.error for finding in apply_gates({"ComponentSLIs": True})[1]] == [False]


@pytest.mark.parametrize(("name", "kind"), [("ExecProbeTimeout", "GA"), ("GitRepoVolumeDriver", "deprecated")])
def test_old_gates_warn_as_upstream(name: str, kind: str) -> None:
    (finding,) = apply_gates({name: True})[1]
    assert finding.message == f"Setting {kind} feature gate {name}=true. It will be removed in a future release."
    assert not finding.error


def test_all_alpha_switches_alpha_gates_that_are_not_set_themselves() -> None:
    gates, _ = apply_gates({"AllAlpha": True, "EventedPLEG": False})
    assert gates.enabled("MemoryQoS")
    assert not gates.enabled("EventedPLEG")
    assert not gates.enabled("NodeLogQuery")


def test_all_beta_switches_beta_gates_both_ways() -> None:
    assert not apply_gates({"AllBeta": False})[0].enabled("GracefulNodeShutdown")
    assert apply_gates({"AllBeta": True})[0].enabled("NodeLogQuery")


def test_asking_for_a_gate_that_does_not_exist_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        FeatureGates().enabled("Nonsense")
