"""`check --replace`: what of a node would behave differently, from a healthy set-up with one thing changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.config.loading import Loaded, load
from glasslet.config.problem import ConfigProblem, Step
from glasslet.config.replacement.differences import Difference, Weight, as_text, differences
from glasslet.config.replacement.facts import NodeSetUp, RunningKubelet, read_set_up

ENDPOINT = "--container-runtime-endpoint=unix:///run/containerd/containerd.sock"
HEALTHY = NodeSetUp(
    running=RunningKubelet(pid=7, version="v1.34.10"),
    unit={"Type": "notify", "KillMode": "process"},
    volumes={"kubernetes.io~projected": 3},
    cgroup_parents=frozenset({"kubepods.slice"}),
)


def flags(*more: str) -> Loaded:
    return load([ENDPOINT, "--cgroup-driver=systemd", *more], cgroup_v2=True)


def found(set_up: NodeSetUp = HEALTHY, loaded: Loaded | None = None) -> list[Difference]:
    return [one for one in differences(set_up, loaded or flags(), ()) if one.weight is not Weight.TAKEN_OVER]


def test_a_kubeadm_node_with_glasslets_unit_has_nothing_to_mend() -> None:
    assert found() == []
    assert "glasslet can replace the Go kubelet" in as_text(differences(HEALTHY, flags(), ()))


def with_checkpoint(name: str, content: dict[str, Any] | None) -> NodeSetUp:
    return replace(HEALTHY, checkpoints={name: content})


STOPS: dict[str, tuple[NodeSetUp, str]] = {
    "a volume of a plugin that is not here": (
        replace(HEALTHY, volumes={"vendor~driver": 2}),
        "2 pods with a volume of vendor/driver",
    ),
    "another minor version": (
        replace(HEALTHY, running=RunningKubelet(pid=7, version="v1.32.4")),
        "the Go kubelet is v1.32.4",
    ),
}


@pytest.mark.parametrize("case", STOPS)
def test_what_would_hurt_pods_stops_a_replacement(case: str) -> None:
    set_up, words = STOPS[case]
    (difference,) = found(set_up)
    assert difference.weight is Weight.STOP
    assert words in difference.text
    assert difference.remedy


@pytest.mark.parametrize(
    "set_up",
    [
        with_checkpoint("cpu_manager_state", {"policyName": "none", "defaultCpuSet": "", "checksum": 1}),
        with_checkpoint("memory_manager_state", {"policyName": "None", "entries": {}}),
        with_checkpoint("dra_manager_state", {"Data": json.dumps({"ClaimInfoStateList": None})}),
        with_checkpoint("dra_manager_state", {"Data": "not JSON"}),
        with_checkpoint("dra_manager_state", {"Data": ["nonsense"]}),
        replace(HEALTHY, running=None),
        replace(HEALTHY, running=RunningKubelet(pid=7, version="")),
        replace(HEALTHY, cgroup_parents=frozenset()),
        replace(HEALTHY, unit={}),
    ],
)
def test_checkpoints_without_entries_and_facts_that_are_not_known_make_no_difference(set_up: NodeSetUp) -> None:
    assert found(set_up) == []


DIFFERS: dict[str, tuple[NodeSetUp, tuple[str, ...], str]] = {
    "the packages' unit": (
        replace(HEALTHY, unit={"ExecStart": "/usr/bin/kubelet $ARGS", "Type": "notify", "KillMode": "process"}),
        (),
        "ExecStart runs /usr/bin/kubelet",
    ),
    "a unit that kills all": (replace(HEALTHY, unit={"Type": "notify"}), (), "KillMode=control-group"),
    "a simple unit": (replace(HEALTHY, unit={"KillMode": "process"}), (), "Type=simple"),
    "the other cgroup driver": (
        HEALTHY,
        ("--cgroup-driver=cgroupfs",),
        "but the pods of this node are below kubepods.slice",
    ),
    "another runtime": (
        HEALTHY,
        ("--container-runtime-endpoint=unix:///var/run/crio/crio.sock",),
        "glasslet is tested with containerd only, and this is CRI-O",
    ),
    "a setting that does nothing here": (HEALTHY, ("--volume-plugin-dir=/plugins",), "FlexVolume"),
    "a gate that does nothing here": (
        HEALTHY,
        ("--feature-gates=EventedPLEG=true",),
        "events of the runtime are hints",
    ),
    "a damaged checkpoint": (with_checkpoint("allocated_pods_state", None), (), "is damaged"),
}


@pytest.mark.parametrize("case", DIFFERS)
def test_what_works_but_not_as_before_is_said(case: str) -> None:
    set_up, more, words = DIFFERS[case]
    (difference,) = found(set_up, flags(*more))
    assert difference.weight is Weight.DIFFER
    assert words in difference.text


def test_settings_that_the_go_kubelet_ignores_as_well_are_no_difference() -> None:
    assert found(loaded=flags("--iptables-drop-bit=10", "--contention-profiling=true")) == []


def test_problems_of_a_start_come_first_with_their_origin() -> None:
    problem = ConfigProblem(Step.VALIDATE, "maxPods", "must not be negative", "-1", "0 or more", "flag --max-pods")
    crio = flags("--container-runtime-endpoint=unix:///var/run/crio/crio.sock")
    first, second = differences(replace(HEALTHY, volumes={}), crio, (problem,))
    assert (first.weight, first.subject, first.origin) == (Weight.STOP, "maxPods", "flag --max-pods")
    assert second.weight is Weight.DIFFER
    text = as_text([first, second])
    assert text.startswith("before a replacement:\n  maxPods: glasslet does not start with this: must not be negative")
    assert text.endswith("1 of these must be mended first")


def test_state_of_the_go_kubelet_is_taken_over() -> None:
    set_up = replace(
        HEALTHY,
        checkpoints={
            "device-plugins/kubelet_internal_checkpoint": {"Data": {}},
            "allocated_pods_state": {"data": "{}"},
        },
        certificates=frozenset({"kubelet-client-current.pem"}),
    )
    taken = {one.subject for one in differences(set_up, flags(), ()) if one.weight is Weight.TAKEN_OVER}
    assert taken == {
        "devices of running containers",
        "resources granted to resized pods",
        "client certificate",
        "volumes",
    }


Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    return written


def test_facts_are_read_where_the_go_kubelet_and_systemd_keep_them(tmp_path: Path, write: Write) -> None:
    write(
        "lib/systemd/system/kubelet.service", "[Unit]\nType=x\n[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n"
    )
    write(
        "etc/systemd/system/kubelet.service.d/20-more.conf",
        "[Service]\nKillMode=process\nExecStart=\nExecStart=/new \\\n  -v\n",
    )
    write("usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", "[Service]\nExecStart=/old\n# KillMode=none\n")
    write("var/lib/kubelet/cpu_manager_state", '{"policyName":"none"}')
    write("var/lib/kubelet/memory_manager_state", "{broken")
    write("var/lib/kubelet/pki/kubelet-client-current.pem", "")
    for pod in ("a", "b"):
        (tmp_path / f"var/lib/kubelet/pods/{pod}/volumes/kubernetes.io~nfs/data").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory/kubepods").mkdir(parents=True)
    got = read_set_up("/var/lib/kubelet", cert_dir="/var/lib/kubelet/pki", root=str(tmp_path))
    assert got == NodeSetUp(
        unit={"ExecStart": "/new    -v", "Restart": "always", "KillMode": "process"},
        checkpoints={"cpu_manager_state": {"policyName": "none"}, "memory_manager_state": None},
        volumes={"kubernetes.io~nfs": 2},
        cgroup_parents=frozenset({"kubepods"}),
        certificates=frozenset({"kubelet-client-current.pem"}),
    )


def test_a_machine_without_a_kubelet_has_no_facts(tmp_path: Path) -> None:
    assert read_set_up("/var/lib/kubelet", root=str(tmp_path)) == NodeSetUp()


def test_a_process_of_that_name_in_other_namespaces_is_not_the_nodes(tmp_path: Path, write: Write) -> None:
    for pid, own in (("7", "mnt:[1]"), ("self", "mnt:[2]")):
        write(f"proc/{pid}/comm", "kubelet\n")
        write(f"proc/{pid}/cmdline", "kubelet\0--v=2\0")
        (tmp_path / f"proc/{pid}/exe").symlink_to("/usr/bin/kubelet")
        (tmp_path / f"proc/{pid}/ns").mkdir()
        for name in ("mnt", "pid", "user"):
            (tmp_path / f"proc/{pid}/ns/{name}").symlink_to(own)
    assert read_set_up("/x", root=str(tmp_path)).running is None
    for name in ("mnt", "pid", "user"):
        (tmp_path / f"proc/7/ns/{name}").unlink()
        (tmp_path / f"proc/7/ns/{name}").symlink_to("mnt:[2]")
    running = read_set_up("/x", root=str(tmp_path)).running
    assert running is not None
    assert (running.pid, running.flags) == (7, ("--v=2",))
