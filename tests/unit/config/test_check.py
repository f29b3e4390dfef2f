"""The engine of `glasslet check`: everything that is wrong, and every value with its origin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.config.files import STANDALONE, write

from glasslet.config.check import as_text, check, effective_rows
from glasslet.config.failure import failure_text
from glasslet.config.kubelet_configuration import KubeletConfiguration, MemoryReservation
from glasslet.config.loading import load
from glasslet.config.machine import KERNEL_SETTINGS, MachineFacts, read_machine
from glasslet.config.validation.machine import validate_on

HEALTHY = MachineFacts(
    online_cpus=frozenset({0, 1}), numa_nodes=frozenset({0}), memory_bytes=2**31, kernel=dict(KERNEL_SETTINGS)
)


def test_a_good_command_line_has_an_empty_report() -> None:
    report = check(["--v=2"], machine=HEALTHY)
    assert (report.problems, report.warnings) == ((), ())
    assert as_text(report, effective=False) == "ok: a kubelet would start with this command line"


def test_problems_of_flags_file_and_machine_are_told_together(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE + "maxPods: -1\n")
    report = check([f"--config={config}", "--nonsense"], machine=MachineFacts(swap=("/dev/sda2",)))
    assert [problem.field for problem in report.problems] == ["--nonsense", "maxPods", "failSwapOn"]
    assert [problem.origin for problem in report.problems] == ["command line", f"file {config}:5", "default"]
    (found,) = [problem for problem in report.problems if problem.field == "maxPods"]
    assert (found.value, found.allowed) == ("-1", "0 or more")


def test_effective_rows_hold_every_value_once_with_its_origin(tmp_path: Path) -> None:
    config = write(tmp_path / "k.yaml", STANDALONE + "evictionHard: {memory.available: 1Gi}\n")
    rows = effective_rows(load([f"--config={config}", "--kube-reserved=cpu=1", "--max-pods=5"]))
    by_path = {row.path: row for row in rows}
    assert len(by_path) == len(rows)
    assert by_path['evictionHard["memory.available"]'].origin == f"file {config}:5"
    assert by_path["kubeReserved.cpu"].origin == "flag --kube-reserved"
    assert (by_path["maxPods"].value, by_path["maxPods"].origin) == (5, "flag --max-pods")
    assert by_path["port"].origin == "default"


def test_header_values_are_masked() -> None:
    report = check(["--manifest-url-header=Authorization:hunter2"], machine=HEALTHY)
    text = as_text(report, effective=True)
    assert "hunter2" not in text
    assert "staticPodURLHeader.Authorization" in text


def test_the_report_is_plain_data_for_json() -> None:
    plain = check(["--max-pods=-1"], machine=HEALTHY).as_plain(effective=True)
    again = json.loads(json.dumps(plain))
    assert again["problems"][0]["field"] == "maxPods"
    assert {"path", "value", "origin"} == set(again["effective"][0])
    assert "effective" not in check([], machine=HEALTHY).as_plain(effective=False)


@pytest.mark.parametrize(
    ("configuration", "machine", "field", "message"),
    [
        (KubeletConfiguration(), MachineFacts(swap=("/swap",)), "failSwapOn", "running with swap on is not supported"),
        (
            KubeletConfiguration(protect_kernel_defaults=True),
            MachineFacts(kernel={"kernel/panic": 0}),
            "protectKernelDefaults",
            "invalid kernel flag: kernel/panic, expected value: 10, actual value: 0",
        ),
        (
            KubeletConfiguration(reserved_system_cpus="0,5"),
            HEALTHY,
            "reservedSystemCPUs",
            "reserved-cpus: 0,5 is not a subset of online-cpus: 0,1",
        ),
        (
            KubeletConfiguration(topology_manager_policy="restricted"),
            MachineFacts(numa_nodes=frozenset(range(9))),
            "topologyManagerPolicy",
            "more than 8 NUMA nodes",
        ),
        (
            KubeletConfiguration(memory_manager_policy="Static", reserved_memory=[MemoryReservation(numa_node=3)]),
            HEALTHY,
            "reservedMemory[0]",
            "NUMA node 3 does not exist",
        ),
        (
            KubeletConfiguration(system_reserved={"cpu": "1500m"}, kube_reserved={"cpu": "1"}),
            HEALTHY,
            "systemReserved.cpu",
            "invalid Node Allocatable configuration. cpu: 2.5 reserved",
        ),
        (
            KubeletConfiguration(kube_reserved={"memory": "3Gi"}),
            HEALTHY,
            "kubeReserved.memory",
            "more than the capacity",
        ),
        (
            KubeletConfiguration(tls_cert_file="/c"),
            MachineFacts(unreadable={"/c": "no such file"}),
            "tlsCertFile",
            "unable to load tlsCertFile /c: no such file",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_the_machine_cannot_do_is_told(
    configuration: KubeletConfiguration, machine: MachineFacts, field: str, message: str
) -> None:
    (finding,) = validate_on(machine, configuration)
    assert finding.field == field
    assert message in finding.message


def test_a_healthy_machine_takes_the_defaults_and_unknown_facts_break_no_rule() -> None:
    assert validate_on(HEALTHY, KubeletConfiguration(protect_kernel_defaults=True)) == []
    assert validate_on(MachineFacts(), KubeletConfiguration(protect_kernel_defaults=True)) == []


def test_machine_facts_are_read_from_proc_and_sys(tmp_path: Path) -> None:
    def fact(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    fact("proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n")
    fact("proc/sys/kernel/panic", "10\n")
    fact("proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\n")
    fact("sys/devices/system/cpu/online", "0-2,5\n")
    fact("sys/devices/system/node/online", "0\n")
    machine = read_machine((str(tmp_path / "none"),), root=str(tmp_path))
    assert machine == MachineFacts(
        cgroup_v2=False,
        swap=("/dev/sda2",),
        online_cpus=frozenset({0, 1, 2, 5}),
        numa_nodes=frozenset({0}),
        memory_bytes=2048 * 1024,
        kernel={"kernel/panic": 10},
        unreadable={str(tmp_path / "none"): "no such file"},
    )


def test_an_empty_machine_is_read_without_an_error(tmp_path: Path) -> None:
    assert read_machine(root=str(tmp_path)) == MachineFacts(cgroup_v2=False)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--nonsense"], "failed to parse kubelet flag: unknown flag: --nonsense"),
        (["start"], "unknown command start"),
        (["--node-labels=k8s.io/a=b"], "failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels"),
        (["--config=/nonexistent"], "failed to load kubelet config file, path: /nonexistent, error: no such file"),
        (
            ["--config-dir=/nonexistent"],
            "failed to merge kubelet configs: failed to walk through kubelet dropin directory",
        ),
        (["--feature-gates=X=true"], "unrecognized feature gate: X"),
        (["--logging-format=x"], 'initialize logging: logging.format: Invalid value: "x": Unsupported log format'),
        (
            ["--max-pods=-1"],
            "failed to validate kubelet configuration, error: invalid configuration: maxPods (--max-pods) -1",
        ),
        (
            ["--max-pods=-1", "--port=0"],
            "failed to validate kubelet configuration, error: [invalid configuration: maxPods",
        ),
        (["--authorization-mode=x", "--max-pods=-1"], "failed to validate kubelet configuration"),
        (["--authorization-mode=x"], "failed to run Kubelet: unknown authorization mode x"),
    ],
    ids=str,
)
def test_the_last_words_are_upstreams(argv: list[str], text: str) -> None:
    loaded = load(argv)
    assert text in failure_text(loaded.problems, loaded.options)
