"""Flag > drop-in > file > default, each value with its origin; every problem at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.config.files import HEAD, STANDALONE, write

from glasslet.config.defaults import EVICTION_HARD
from glasslet.config.loading import Loaded, load
from glasslet.config.problem import Step


def messages(loaded: Loaded) -> list[str]:
    return [problem.message for problem in loaded.problems]


def test_a_flag_beats_a_drop_in_beats_the_file_beats_the_default(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE + "maxPods: 1\npodsPerCore: 1\nport: 1\n")
    write(tmp_path / "d" / "10.conf", "maxPods: 2\npodsPerCore: 2\n")
    loaded = load([f"--config={config}", f"--config-dir={tmp_path}/d", "--max-pods=3"])
    made = loaded.configuration
    assert (made.max_pods, made.pods_per_core, made.port, made.kube_api_burst) == (3, 2, 1, 100)
    origins = [str(loaded.origin_of(name)) for name in ("maxPods", "podsPerCore", "port", "kubeAPIBurst")]
    assert origins == ["flag --max-pods", f"drop-in {tmp_path}/d/10.conf:4", f"file {config}:7", "default"]
    assert loaded.problems == ()


def test_without_a_config_file_the_legacy_defaults_apply_and_nothing_is_wrong() -> None:
    loaded = load([])
    made = loaded.configuration
    assert made.authentication.anonymous.enabled
    assert not made.authentication.webhook.enabled
    assert (made.authorization.mode, made.read_only_port, made.eviction_hard) == ("AlwaysAllow", 10255, {})
    assert loaded.problems == ()
    assert str(loaded.origins["readOnlyPort"]) == "default of a start without --config"


def test_a_config_dir_alone_keeps_the_legacy_defaults(tmp_path: Path) -> None:
    write(tmp_path / "a.conf", "maxPods: 9\n")
    loaded = load([f"--config-dir={tmp_path}"])
    assert (loaded.configuration.max_pods, loaded.configuration.read_only_port) == (9, 10255)
    assert loaded.configuration.eviction_hard == {}


def test_with_a_config_file_webhooks_need_an_api_server(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", "maxPods: 1\n")
    assert messages(load([f"--config={config}"])) == [
        "no client provided, cannot use webhook authentication",
        "no client provided, cannot use webhook authorization",
    ]
    assert load([f"--config={config}", "--kubeconfig=/k"]).problems == ()


def test_hard_thresholds_are_filled_in_only_while_a_config_file_is_read(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE)
    assert load([f"--config={config}"]).configuration.eviction_hard == EVICTION_HARD
    config = write(tmp_path / "k.yaml", STANDALONE + "evictionHard: {}\n")
    assert load([f"--config={config}"]).configuration.eviction_hard == {}
    config = write(tmp_path / "k.yaml", STANDALONE + "evictionHard: {memory.available: 1Gi}\n")
    assert load([f"--config={config}"]).configuration.eviction_hard == {"memory.available": "1Gi"}


def test_default_thresholds_are_kept_beside_own_ones_when_asked_for(tmp_path: Path) -> None:
    body = "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\n"
    loaded = load([f"--config={write(tmp_path / 'k.yaml', STANDALONE + body)}"])
    assert loaded.configuration.eviction_hard == EVICTION_HARD | {"memory.available": "1Gi"}
    assert loaded.origins['evictionHard["memory.available"]'].place.endswith(":5")
    assert 'evictionHard["nodefs.available"]' not in loaded.origins


def test_merging_default_thresholds_in_a_drop_in_has_no_effect(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE + "evictionHard: {memory.available: 1Gi}\n")
    write(tmp_path / "d" / "a.conf", "mergeDefaultEvictionSettings: true\n")
    loaded = load([f"--config={config}", f"--config-dir={tmp_path}/d"])
    assert loaded.configuration.eviction_hard == {"memory.available": "1Gi"}


def test_drop_ins_merge_maps_by_key_replace_lists_and_remove_with_null(tmp_path: Path) -> None:
    body = "clusterDNS: [1.1.1.1]\nsystemReserved: {cpu: '1', memory: 1Gi}\nmaxPods: 5\n"
    config = write(tmp_path / "k.yaml", STANDALONE + body)
    write(tmp_path / "d" / "20.conf", "systemReserved: {memory: null, pid: '7'}\nmaxPods: null\n")
    write(tmp_path / "d" / "10.conf", "clusterDNS: [2.2.2.2]\nsystemReserved: {pid: '6'}\n")
    made = load([f"--config={config}", f"--config-dir={tmp_path}/d"])
    assert made.configuration.cluster_dns == ["2.2.2.2"]
    assert made.configuration.system_reserved == {"cpu": "1", "pid": "7"}
    assert (made.configuration.max_pods, str(made.origin_of("maxPods"))) == (110, "default")


def test_drop_ins_are_taken_in_walk_order_from_sub_directories_too_and_by_suffix(tmp_path: Path) -> None:
    for name, value in {"a.conf": 1, "b/z.conf": 2, "b.conf": 3, "c/a.conf": 4, "zz.yaml": 9, "z.conf.bak": 9}.items():
        write(tmp_path / name, f"maxPods: {value}\n")
    loaded = load([f"--config-dir={tmp_path}"])
    assert loaded.configuration.max_pods == 4
    write(tmp_path / "d.conf", "maxPods: 5\n")
    assert load([f"--config-dir={tmp_path}"]).configuration.max_pods == 5


def test_an_empty_list_in_the_main_file_is_lost_when_drop_ins_are_used(tmp_path: Path) -> None:
    # config-fields.md: "an explicitly empty enforceNodeAllocatable in the main file becomes ["pods"] again"
    config = write(tmp_path / "k.yaml", STANDALONE + "enforceNodeAllocatable: []\n")
    assert load([f"--config={config}"]).configuration.enforce_node_allocatable == []
    (tmp_path / "d").mkdir()
    argv = [f"--config={config}", f"--config-dir={tmp_path}/d"]
    assert load(argv).configuration.enforce_node_allocatable == ["pods"]
    write(tmp_path / "d" / "a.conf", "enforceNodeAllocatable: []\n")
    assert load(argv).configuration.enforce_node_allocatable == []


def test_conditional_defaults_are_settled_before_drop_ins(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE)
    write(tmp_path / "d" / "a.conf", "maxParallelImagePulls: 5\nnodeStatusUpdateFrequency: 20s\n")
    loaded = load([f"--config={config}", f"--config-dir={tmp_path}/d"])
    assert loaded.configuration.node_status_report_frequency == 300.0
    assert "maxParallelImagePulls 5" in messages(loaded)[0]


def test_zero_by_flag_stays_zero_and_zero_in_the_file_is_the_default(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE + "syncFrequency: 0s\nmaxPods: 0\n")
    loaded = load([f"--config={config}"])
    assert (loaded.configuration.sync_frequency, loaded.configuration.max_pods) == (60.0, 110)
    assert str(loaded.origin_of("maxPods")) == "default (replaces 0)"
    loaded = load([f"--config={config}", "--sync-frequency=0", "--max-pods=0"])
    assert loaded.configuration.max_pods == 0
    assert [(problem.step, problem.origin) for problem in loaded.problems] == [(Step.START, "flag --sync-frequency")]


def test_a_map_given_by_flag_replaces_the_files_whole_map(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE + "kubeReserved: {cpu: '1', memory: 1Gi}\n")
    loaded = load([f"--config={config}", "--kube-reserved=cpu=2"])
    assert loaded.configuration.kube_reserved == {"cpu": "2"}
    assert str(loaded.origin_of("kubeReserved")) == "flag --kube-reserved"


def test_gates_merge_one_by_one_and_the_flag_wins(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE + "featureGates: {MemoryQoS: true, EventedPLEG: true}\n")
    loaded = load([f"--config={config}", "--feature-gates=EventedPLEG=false"])
    assert (loaded.gates.enabled("MemoryQoS"), loaded.gates.enabled("EventedPLEG")) == (True, False)
    assert str(loaded.origins["featureGates.EventedPLEG"]) == "flag --feature-gates"
    assert str(loaded.origins["featureGates.MemoryQoS"]) == f"file {config}:5"


def test_vmodule_appends_and_seccomp_default_is_ored(tmp_path: Path) -> None:
    body = "seccompDefault: true\nlogging: {vmodule: [{filePattern: a, verbosity: 1}]}\n"
    config = write(tmp_path / "k.yaml", STANDALONE + body)
    made = load([f"--config={config}", "--vmodule=b=2", "--seccomp-default=false"]).configuration
    assert [item.file_pattern for item in made.logging.vmodule] == ["a", "b"]
    assert made.seccomp_default


def test_relative_paths_count_from_the_config_file_for_exactly_the_listed_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        "staticPodPath: m\ntlsCertFile: ../c\ntlsPrivateKeyFile: k\nresolvConf: r\nvolumePluginDir: v/\npodLogsDir: l\n"
        "authentication: {webhook: {enabled: false}, x509: {clientCAFile: ca}}\nauthorization: {mode: AlwaysAllow}\n"
        "providerID: p\n"
    )
    write(tmp_path / "etc" / "k.yaml", body)
    monkeypatch.chdir(tmp_path)
    made = load(["--config=etc/k.yaml"]).configuration
    base = f"{tmp_path}/etc"
    assert (made.static_pod_path, made.tls_cert_file, made.tls_private_key_file) == (
        f"{base}/m",
        f"{tmp_path}/c",
        f"{base}/k",
    )
    assert (made.resolv_conf, made.volume_plugin_dir, made.pod_logs_dir) == (f"{base}/r", f"{base}/v", f"{base}/l")
    assert (made.authentication.x509.client_ca_file, made.provider_id) == (f"{base}/ca", "p")


def test_relative_paths_in_drop_ins_and_flags_are_left_alone(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE)
    write(tmp_path / "d" / "a.conf", "staticPodPath: m\n")
    argv = [f"--config={config}", f"--config-dir={tmp_path}/d", "--tls-cert-file=c"]
    made = load(argv).configuration
    assert (made.static_pod_path, made.tls_cert_file) == ("m", "c")


def test_unknown_and_duplicate_fields_of_the_main_file_are_warnings_with_path_and_line(tmp_path: Path) -> None:
    access = "authentication:\n  webhok: {}\n  webhook: {enabled: false}\n"
    body = f"maxPods: 1\n{access}maxPods: 2\nauthorization: {{mode: AlwaysAllow}}\n"
    config = write(tmp_path / "k.yaml", body)
    loaded = load([f"--config={config}"])
    assert loaded.problems == ()
    assert loaded.configuration.max_pods == 2
    assert [(notice.message, notice.origin) for notice in loaded.warnings] == [
        ('key "maxPods" is given twice, the last one counts', f"{config}:7"),
        ("unknown field \"authentication.webhok\", did you mean 'webhook'?", f"file {config}:5"),
    ]


def test_a_duplicate_key_in_a_drop_in_is_fatal_and_an_unknown_field_is_not(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conf", "maxPods: 1\nmaxPods: 2\n")
    (problem,) = load([f"--config-dir={tmp_path}"]).problems
    assert (problem.step, problem.origin) == (Step.MERGE, f"{path}:4")
    write(tmp_path / "a.conf", "maxPodz: 1\n")
    loaded = load([f"--config-dir={tmp_path}"])
    assert (loaded.problems, len(loaded.warnings)) == ((), 1)


def test_a_wrong_type_inside_a_map_costs_only_its_entry(tmp_path: Path) -> None:
    body = "evictionHard:\n  memory.available: 5\n  nodefs.available: 1Gi\n"
    loaded = load([f"--config={write(tmp_path / 'k.yaml', STANDALONE + body)}"])
    (problem,) = loaded.problems
    assert problem.message == 'evictionHard["memory.available"]: want text, got the number 5'
    assert problem.origin.endswith(":6")
    assert loaded.configuration.eviction_hard == {"nodefs.available": "1Gi"}


def test_wrong_types_are_all_told_with_their_lines(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE + "maxPods: many\nsyncFrequency: 5\nclusterDNS: 1.1.1.1\n")
    loaded = load([f"--config={config}"])
    assert [(problem.field, problem.origin) for problem in loaded.problems] == [
        ("maxPods", f"file {config}:5"),
        ("syncFrequency", f"file {config}:6"),
        ("clusterDNS", f"file {config}:7"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("- a\n", "want a map"),
        ("just text", "want a map"),
        ("kind: KubeletConfiguration\n", "apiVersion is missing"),
        ("apiVersion: kubelet.config.k8s.io/v1beta1\n", "kind is missing"),
        ("apiVersion: v1\nkind: Pod\n", "apiVersion: want"),
        ("apiVersion: 1\nkind: [x]\n", "apiVersion: want"),
        (HEAD + "maxPods: .nan\n", "NaN"),
        (HEAD + "a: &a [*a]\n", "stands inside"),
        (HEAD + "a: " + "[" * 500, "nested deeper"),
        (HEAD + "\tmaxPods: 1", "invalid YAML"),
        ("\x00\x01\x02", "binary"),
    ],
)
@pytest.mark.parametrize("drop_in", [False, True])
def test_a_file_that_is_no_configuration_is_a_clear_problem_of_that_file(
    tmp_path: Path, text: str, message: str, drop_in: bool
) -> None:
    (tmp_path / "a.conf").write_text(text)
    argv = [f"--config-dir={tmp_path}"] if drop_in else [f"--config={tmp_path}/a.conf"]
    loaded = load(argv)
    assert {problem.step for problem in loaded.problems} == {Step.MERGE if drop_in else Step.LOAD}
    assert message in loaded.problems[0].message
    assert str(tmp_path / "a.conf") in loaded.problems[0].origin


def test_paths_that_are_no_files_are_problems_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, message in {
        "pipe": "named pipe",
        "loop": "symbolic links",
        ".": "directory",
        "none": "no such file",
    }.items():
        (problem,) = load([f"--config={tmp_path}/{name}"]).problems
        assert message in problem.message
    (problem,) = load([f"--config-dir={tmp_path}/none"]).problems
    assert "no such file" in problem.message
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "loop.conf").symlink_to("loop.conf")
    os.mkfifo(tmp_path / "d" / "pipe.conf")
    assert len(load([f"--config-dir={tmp_path}/d"]).problems) == 2


def test_a_bad_gate_in_file_and_flag_is_told_with_its_origin(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE + "featureGates: {Nonsense: true}\n")
    loaded = load([f"--config={config}", "--feature-gates=ComponentSLIs=false"])
    assert [(problem.message, problem.origin) for problem in loaded.problems] == [
        ("unrecognized feature gate: Nonsense", f"file {config}:5"),
        ("cannot set feature gate ComponentSLIs to false, feature is locked to true", "flag --feature-gates"),
    ]


def test_problems_of_all_steps_are_told_together_in_the_order_of_the_steps(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", "maxPods: -1\nport: x\nfeatureGates: {Nonsense: true}\n")
    steps = [
        problem.step for problem in load([f"--config={config}", "--nonsense", "--node-labels=k8s.io/x=y"]).problems
    ]
    assert steps == [Step.PARSE, Step.FLAGS, Step.LOAD, Step.GATES, Step.VALIDATE, Step.START, Step.START]


def test_loading_twice_gives_the_same_and_leaves_the_defaults_alone() -> None:
    first = load(["--anonymous-auth=false", "--kube-reserved=cpu=1", "--v=7"])
    assert load([]).configuration.logging.verbosity == 0
    assert load(["--anonymous-auth=false", "--kube-reserved=cpu=1", "--v=7"]).tree == first.tree
