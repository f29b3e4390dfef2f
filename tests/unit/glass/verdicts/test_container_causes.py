"""Why a container could not be started: the runtime's chain of errors, cut to its cause."""

from __future__ import annotations

import pytest

from glasslet.api.container import ResourceRequirements
from glasslet.api.pod_status import ContainerState, ContainerStateTerminated
from glasslet.api.quantity import Quantity
from glasslet.glass.verdicts.container_causes import container_cause
from glasslet.glass.verdicts.pod_rules import pod_verdict
from tests.builders.pod import container, pod
from tests.builders.record import START, record, station, waiting
from tests.builders.verdicts import SINCE, STARTED, ended, held, reported, situation, status

RUNC = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
SMALL = ResourceRequirements(limits={"memory": Quantity.parse("256Ki")})
"""A limit that is too small for runc."""


@pytest.mark.parametrize(
    ("chain", "words"),
    [
        (
            f"{RUNC}unable to set memory limit to 262144 (current usage: 2699264, peak usage: 2785280): unknown",
            "its memory limit (256Ki) is too small to start a process: that alone takes 2.7 MiB",
        ),
        (
            'cannot load seccomp profile "/s/a.json": open /s/a.json: no such file or directory',
            "its seccomp profile /s/a.json does not exist on this node",
        ),
        (
            'failed to generate spec: path "/data" is mounted on "/" but it is not a shared mount',
            "a volume wants mountPropagation, and its path /data is on a mount of the node that is not shared",
        ),
        (f"{RUNC}Cwd must be an absolute path: unknown", "its working directory here is no absolute path"),
        (
            f'{RUNC}error mounting "/r/pods/u/containers/main/076f6d46" to rootfs at "/etc": mount: not a directory',
            "its terminationMessagePath /etc is a folder in the image, and must be a file",
        ),
        (
            f'{RUNC}error mounting "/r/pods/u/volumes/v" to rootfs at "/etc": mount: not a directory',
            "a volume cannot be mounted at /etc: one of the two is a folder, the other a file (/r/pods/u/volumes/v)",
        ),
    ],
)
def test_a_chain_of_errors_is_cut_to_its_cause(chain: str, words: str) -> None:
    found = container_cause(chain, container(resources=SMALL, working_dir="here"))
    assert found.words == words
    assert found.next_step


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ("exec /x/run: exec format error", "exited with code 1: its command /x/run is a program for another archi"),
        ("exec /x/run: no such file or directory", "what its command /x/run is run by does not exist"),
    ],
)
def test_what_the_kernel_could_not_run_is_explained_once(last: str, words: str) -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(1), restart_count=1)
    verdict = pod_verdict(situation(now=status(crashed), last_words={"main": last}))
    assert words in verdict.sentence
    assert "saying" not in verdict.sentence


def test_a_container_that_was_never_started_has_the_runtimes_cause() -> None:
    words = f"{RUNC}Cwd must be an absolute path: unknown"
    terminated = ContainerStateTerminated(exit_code=128, reason="StartError", message=words, finished_at=SINCE)
    failed = ContainerState(terminated=terminated)
    crashed = reported(state=held("CrashLoopBackOff"), last_state=failed, restart_count=1)
    it = situation(pod(container(working_dir="here")), now=status(crashed))
    assert "could not be started: its working directory here is no absolute path" in pod_verdict(it).sentence


def test_a_disk_without_inodes_is_not_called_full() -> None:
    detail = "mkdir /data/pods/u: No space left on device"
    failed = station("volumes", 1, 2, outcome="failed", detail=detail)
    it = situation(
        now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], failed), without_inodes="/data/pods"
    )
    verdict = pod_verdict(it)
    assert "no inode is left on the disk of /data/pods" in verdict.sentence
    assert "df -i" in verdict.next_step
    assert "No space left" not in verdict.sentence


def test_a_second_pod_of_a_name_is_told_of_the_first() -> None:
    waits = (waiting("queue", "end of the pod of the same name (uid u)", 2),)
    it = situation(now=status(phase="Pending", pod_ip=""), record=record(waits=waits), rival_since=START)
    verdict = pod_verdict(it)
    assert (verdict.rule, verdict.state) == ("name_clash", "failing")
    assert "another manifest has a pod of this name and namespace, which came first" in verdict.sentence
