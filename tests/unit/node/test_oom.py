"""Out-of-memory kills in the kernel's words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.host.kernel_log import message_of
from glasslet.node.oom import OomKill, OomParser, kill_words, system_oom
from glasslet.node.oom_watch import owner
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod

ID = "eded22c539207f86"
GROUP = f"/kubepods/burstable/pod1234/{ID}"
BEGIN = "sh invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999"
OF_GROUP = (
    f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg={GROUP},"
    f"task_memcg={GROUP},task=sh,pid=22974,uid=0"
)
OF_SYSTEM = (
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
    f"task_memcg={GROUP},task=java,pid=77,uid=1000"
)
KILLED = "Memory cgroup out of memory: Killed process 22974 (sh) total-vm:26852kB, anon-rss:16132kB"


def kills(*lines: str) -> list[OomKill]:
    parser = OomParser()
    return [kill for line in lines if (kill := parser.take(line)) is not None]


def test_a_kill_by_the_limit_of_a_cgroup_names_process_victim_and_limit() -> None:
    assert kills(BEGIN, "CPU: 1 PID: 22974", OF_GROUP, KILLED) == [
        OomKill(process="sh", pid=22974, limit=GROUP, victim=GROUP)
    ]


def test_a_kill_for_want_of_memory_of_the_machine_is_the_system_s() -> None:
    (kill,) = kills(BEGIN, OF_SYSTEM, "Out of memory: Killed process 77 (java) total-vm:1kB")
    assert kill == OomKill(process="java", pid=77, victim=GROUP)
    assert kill.of_system
    assert system_oom(kill) == "System OOM encountered, victim process: java, pid: 77"


@pytest.mark.parametrize("line", [KILLED, "Killed process 22974 (sh), UID 0, total-vm:1kB"])
def test_an_older_kernel_names_the_cgroups_before_the_process(line: str) -> None:
    groups = f"Task in {GROUP} killed as a result of limit of /kubepods/burstable"
    assert kills(BEGIN, groups, line) == [OomKill(process="sh", pid=22974, limit="/kubepods/burstable", victim=GROUP)]


def test_two_kills_in_a_row_are_two() -> None:
    assert len(kills(BEGIN, OF_GROUP, KILLED, BEGIN, OF_GROUP, KILLED)) == 2


def test_the_lines_of_a_kill_count_only_after_its_begin() -> None:
    assert kills(OF_GROUP, KILLED) == []


def test_a_process_whose_name_looks_like_a_field_hides_nothing() -> None:
    (kill,) = kills(BEGIN, OF_GROUP.replace("task=sh,", "task=a,pid=1,uid=0,"))
    assert (kill.process, kill.pid) == ("a,pid=1,uid=0", 22974)


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (b"6,39997,12215918855,-;glt: port 1\n SUBSYSTEM=net\n", "glt: port 1"),
        (b"4,1,2,-,caller=T1;a;b\n", "a;b"),
        (b"12,1,2,-;said by a process\n", None),
        (b"", None),
        (b";x", None),
        (b"999999999999,1;x", None),
        (b"no record", None),
    ],
)
def test_only_the_kernel_s_own_records_count(record: bytes, text: str | None) -> None:
    assert message_of(record) == text


def a_pod() -> ObservedPod:
    container = ObservedContainer(
        id=ContainerID(ID),
        name="main",
        attempt=0,
        phase=ContainerPhase.RUNNING,
        sandbox_id=SandboxID("s"),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return ObservedPod(uid=PodUID("1234"), name="web", namespace="default", containers=(container,))


@pytest.mark.parametrize(
    "cgroup",
    [
        GROUP,
        f"/kubepods.slice/kubepods-pod1234.slice/cri-containerd-{ID}.scope",
        # Containers with cgroups of their own: systemd or another runtime inside.
        f"{GROUP}/system.slice/app.service",
        f"{GROUP}/another-containers-id",
    ],
)
def test_the_container_of_a_cgroup_is_found_by_its_id(cgroup: str) -> None:
    found = owner(cgroup, [a_pod()])
    assert found is not None
    assert (str(found[0]), found[1]) == ("default/web", "main")


@pytest.mark.parametrize("cgroup", ["", "/", "/system.slice/ssh.service"])
def test_a_cgroup_of_no_container_has_no_owner(cgroup: str) -> None:
    assert owner(cgroup, [a_pod()]) is None


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ("/", "the node ran out of memory"),
        (GROUP, "the container reached its memory limit"),
        ("/kubepods/burstable/pod1234", "the memory limit of cgroup /kubepods/burstable/pod1234 was reached"),
    ],
)
def test_a_kill_says_whose_limit_it_was(limit: str, why: str) -> None:
    kill = OomKill(process="sh", pid=9, limit=limit, victim=GROUP)
    assert kill_words(kill, "main", ID) == f"The kernel killed process sh (pid 9) of container main: {why}"
