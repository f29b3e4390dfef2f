"""The command line against the list of all flags (tests/data/flags.json), and pflag's syntax."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from glasslet.config.flags.help import help_text
from glasslet.config.flags.parsing import parse
from glasslet.config.flags.removed import REMOVED, RemovedFlag
from glasslet.config.flags.table import CONFIG_FILE, FLAGS, WINDOWS_ONLY, deprecation
from glasslet.config.loading import load
from glasslet.config.options import Options

DATA = json.loads((Path(__file__).parents[2] / "data" / "flags.json").read_text())
ROWS = {row["flag"][2:]: row for row in DATA["rows"]}
ACCEPTED = [name for name in ROWS if name not in WINDOWS_ONLY]
EXAMPLES = {
    "bool": "false",
    "string": "x",
    "ip": "10.0.0.1",
    "duration": "3s",
    "quantity": "1Ki",
    "int": "3",
    "int32": "3",
    "int64": "3",
    "level": "3",
    "strings": "a,b",
    "map": "a=b",
    "map-entry": "a=b",
    "thresholds": "memory.available<1Gi",
    "labels": "a=b",
    "gates": "NodeLogQuery=true",
    "headers": "a:b",
    "taints": "a=b:NoSchedule",
    "reserved-memory": "0:memory=1Gi",
    "vmodule": "a=3",
    "version": "false",
}


def test_the_table_holds_exactly_the_flags_of_the_list() -> None:
    assert set(FLAGS) == set(ROWS)
    listed = {row["flag"][2:] for row in DATA["removed"]} - {"pod-infra-container-image"}
    assert set(REMOVED) == listed | {"pleg-relist-period"}


@pytest.mark.parametrize("name", ROWS)
def test_a_flag_has_the_field_default_and_status_of_the_list(name: str) -> None:
    row, flag = ROWS[name], FLAGS[name]
    assert flag.field == (row["config_field"] or "")
    assert bool(deprecation(flag)) == (row["status"] == "deprecated")
    assert not flag.field or deprecation(flag) in ("", CONFIG_FILE)
    default = row["default"]
    text = (
        ",".join(default)
        if isinstance(default, list)
        else str(default).lower()
        if isinstance(default, bool)
        else default
    )
    assert flag.default == ("" if default in ([], {}) else str(text))


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_flag_is_accepted_in_both_spellings_and_warns_if_deprecated(name: str) -> None:
    value = EXAMPLES[FLAGS[name].kind]
    dashes, underscores = parse([f"--{name}={value}"]), parse([f"--{name.replace('-', '_')}={value}"])
    assert dashes.problems == []
    assert dashes.values == underscores.values
    assert [notice.message.startswith(f"Flag --{name} has been deprecated, ") for notice in dashes.notices] == (
        [True] if ROWS[name]["status"] == "deprecated" else []
    )


@pytest.mark.parametrize("name", [name for name in ACCEPTED if ROWS[name]["config_field"]])
def test_a_flag_lands_in_its_field(name: str) -> None:
    argv = [f"--{name}={EXAMPLES[FLAGS[name].kind]}"]
    loaded = load(argv, cgroup_v2=True)
    field = FLAGS[name].field
    place = "featureGates.NodeLogQuery" if field == "featureGates" else field
    assert str(loaded.origins[place]) == f"flag --{name}"


@pytest.mark.parametrize("name", [name for name in ACCEPTED if name.replace("-", "_") in Options.__struct_fields__])
def test_defaults_of_flags_outside_the_object_are_those_of_the_list(name: str) -> None:
    value, wanted = getattr(Options(), name.replace("-", "_")), ROWS[name]["default"]
    assert str(value) == str(wanted) if not isinstance(wanted, dict) else value == wanted


@pytest.mark.parametrize("flag", REMOVED.values(), ids=lambda flag: flag.name)
def test_a_removed_flag_is_accepted_with_one_warning_that_says_since_when_and_what_instead(flag: RemovedFlag) -> None:
    argv = [f"--{flag.name}", "value"] if flag.takes_value else [f"--{flag.name}"]
    result = parse([*argv, "--v=2"])
    assert (result.problems, result.values) == ([], {"v": 2})
    (notice,) = result.notices
    assert flag.replacement in notice.message
    assert f"v{flag.removed_in}" in notice.message or not flag.removed_in


def test_values_follow_an_equal_sign_or_the_flag() -> None:
    assert parse(["--max-pods", "5", "--node-ip=1.2.3.4"]).values == {"max-pods": 5, "node-ip": "1.2.3.4"}
    assert parse(["-v", "4"]).values == parse(["-v=4"]).values == parse(["-v4"]).values == {"v": 4}


def test_booleans_take_a_value_only_after_an_equal_sign() -> None:
    assert parse(["--fail-swap-on"]).values == {"fail-swap-on": True}
    assert parse(["--fail-swap-on=F"]).values == {"fail-swap-on": False}
    (problem,) = parse(["--fail-swap-on", "false"]).problems
    assert problem.message == "unknown command false"


def test_the_last_of_repeated_scalars_counts() -> None:
    assert parse(["--max-pods=1", "--max-pods=2"]).values == {"max-pods": 2}


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["--cluster-dns=1.1.1.1,2.2.2.2", "--cluster-dns=3.3.3.3"], ["1.1.1.1", "2.2.2.2", "3.3.3.3"]),
        (['--tls-cipher-suites="a,b",c'], ["a,b", "c"]),
        (["--cluster-dns="], []),
        (["--kube-reserved=cpu=1,memory=2", "--kube-reserved=cpu=3"], {"cpu": "3", "memory": "2"}),
        (["--cpu-manager-policy-options=a=1,b=2", "--cpu-manager-policy-options=c=3"], {"a": "1,b=2", "c": "3"}),
        (
            ["--eviction-hard=memory.available<1Gi,nodefs.available<10%"],
            {"memory.available": "1Gi", "nodefs.available": "10%"},
        ),
        (["--node-labels=a=b,c", "--node-labels=d=e"], {"a": "b", "c": "", "d": "e"}),
        (["--feature-gates=A=true", "--feature-gates=B=0"], {"A": True, "B": False}),
        (
            ["--manifest-url-header=a:hello,b:again", "--manifest-url-header=b:you"],
            {"a": ["hello"], "b": ["again", "you"]},
        ),
        (
            ["--reserved-memory=0:memory=1Gi;1:memory=2Gi", "--reserved-memory=2:hugepages-2Mi=4Mi"],
            [
                {"numaNode": 0, "limits": {"memory": "1Gi"}},
                {"numaNode": 1, "limits": {"memory": "2Gi"}},
                {"numaNode": 2, "limits": {"hugepages-2Mi": "4Mi"}},
            ],
        ),
        (
            ["--register-with-taints=a=b:NoSchedule", "--register-with-taints=c:NoExecute,d:NoExecute-"],
            [{"key": "c", "effect": "NoExecute"}],
        ),
        (
            ["--vmodule=kubelet=5,volume*=6", "--vmodule=x=1"],
            [
                {"filePattern": "kubelet", "verbosity": 5},
                {"filePattern": "volume*", "verbosity": 6},
                {"filePattern": "x", "verbosity": 1},
            ],
        ),
        (["--max-pods=0x10"], 16),
        (["--oom-score-adj=-010"], -8),
        (["--max-open-files=1_000"], 1000),
        (["--sync-frequency=90s"], "1m30s"),
    ],
)
def test_lists_and_maps_add_up_and_numbers_are_gos(argv: list[str], value: object) -> None:
    result = parse(argv)
    assert result.problems == []
    assert list(result.values.values()) == [value]


def test_an_empty_address_is_ignored() -> None:
    assert parse(["--address="]).values == {}


@pytest.mark.parametrize(
    "argument",
    [
        "--max-pods=x",
        "--max-pods=99999999999",
        "--max-pods=",
        "--v=-1",
        "--fail-swap-on=maybe",
        "--address=localhost",
        "--sync-frequency=5",
        "--kube-reserved=cpu",
        "--eviction-hard=memory.available=1Gi",
        "--feature-gates=A",
        "--feature-gates=A=maybe",
        "--manifest-url-header=a",
        "--register-with-taints=a=b",
        "--register-with-taints=a=b:Never",
        "--register-with-taints=-a-:NoSchedule",
        "--register-with-taints=a:NoSchedule,a:NoSchedule",
        "--reserved-memory=0:cpu=1",
        "--reserved-memory=x",
        "--vmodule=a",
        "--vmodule=a=99999999999",
        "--log-text-info-buffer-size=big",
        "--version=v1.33.0",
        "--version=maybe",
        "--cpu-manager-policy-options=a",
        "--=x",
        "---x",
        "-x",
        "-vx",
    ],
)
def test_a_bad_value_is_one_problem_that_names_the_flag(argument: str) -> None:
    (problem,) = parse([argument]).problems
    assert problem.allowed
    assert problem.field.lstrip("-")[:4] in argument or problem.field == "-x"


def test_a_missing_value_is_a_problem() -> None:
    assert parse(["--max-pods"]).problems[0].message == "flag needs an argument: --max-pods"


def test_every_unknown_flag_is_told_with_the_nearest_name() -> None:
    problems = parse(["--max-podz=3", "--quite-unknown", "value", "--windows-service"]).problems
    assert [problem.message for problem in problems] == [
        "unknown flag: --max-podz, did you mean --max-pods?",
        "unknown flag: --quite-unknown",
        "unknown flag: --windows-service (it exists on Windows only)",
    ]


def test_words_that_are_no_flags_are_refused_also_after_two_dashes() -> None:
    messages = [problem.message for problem in parse(["start", "--v=2", "--", "--v=3"]).problems]
    assert messages == ["unknown command start", "unknown command --v=3"]


def test_header_values_never_show_in_problems() -> None:
    assert "hunter2" not in str(parse(["--manifest-url-header=hunter2"]).problems)
    loaded = load(["--manifest-url-header=Authorization:hunter2", "--authorization-mode=x"])
    assert "hunter2" not in str(loaded.problems) + str(loaded.warnings)


def test_help_names_every_flag_and_every_young_gate() -> None:
    text = help_text()
    assert [name for name in ACCEPTED if f"--{name}" not in text] == []
    assert "EventedPLEG=false (ALPHA)" in text
    assert "ComponentSLIs=" not in text
    assert max(map(len, text.splitlines())) <= 120
