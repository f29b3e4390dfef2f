"""Who goes, in which order, with which message: as the Go kubelet's eviction manager decides on the same figures."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from glasslet.api.pod import Pod
from glasslet.eviction.eviction_text import eviction_text
from glasslet.eviction.local_limits import limit_exceeded
from glasslet.eviction.ranking import EvictionCandidate, rank
from glasslet.eviction.signals import Signal, observe
from glasslet.eviction.thresholds import Threshold
from glasslet.podspec.qos import is_critical
from glasslet.stats.disks.storage import DiskLayout
from glasslet.stats.pages.summary_types import PodStats, Summary
from tests.builders.eviction import GIB, MIB, disk, summary, using
from tests.builders.podspec import pod_of
from tests.fakes.go_eviction import GoEviction, Scenario, evictions_of_go, missing_eviction_requirement

pytestmark = [pytest.mark.go, pytest.mark.timeout(1200)]

PRIORITIES = (-10, 0, 0, 0, 100, 1000, 2_000_000_000)
PODS = 30
SEEDS = 12
CROSSED = {
    Signal.MEMORY: "90%",
    Signal.NODEFS: "90%",
    Signal.NODEFS_INODES: "95%",
    Signal.IMAGEFS: "90%",
    Signal.PIDS: "99%",
}


def some_pod(number: int, chance: random.Random, *, all_request: bool = False) -> Pod:
    """One of any class and priority, with one or two containers; sometimes static, sometimes with overhead.
    `all_request`: no two request the same storage."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    kind = chance.choice(("besteffort", "burstable", "guaranteed"))
    if kind != "besteffort":
        requests = {
            "memory": f"{chance.randrange(1, 400)}Mi",
            "cpu": "10m",
            "ephemeral-storage": f"{chance.randrange(1, 400)}Mi",
        }
    if all_request:
        requests["ephemeral-storage"] = f"{number + 1}Mi"
    if kind == "guaranteed":
        limits = {name: amount for name, amount in requests.items() if name != "ephemeral-storage"}
    containers = [{"name": "main", "resources": {"requests": requests, "limits": limits}}]
    if chance.random() < 0.3:
        containers.append({"name": "second", "resources": {"requests": {"memory": "20Mi"}}})
    spec: dict[str, object] = {"priority": chance.choice(PRIORITIES)}
    if chance.random() < 0.2:
        spec["overhead"] = {"memory": "17Mi"}
    if chance.random() < 0.3:
        spec["volumes"] = [{"name": "data", "emptyDir": {}}]
    meta: dict[str, object] = {"name": f"p{number:02}", "uid": f"uid-{number:02}"}
    if chance.random() < 0.1:
        meta["annotations"] = {"kubernetes.io/config.source": "file"}
    return pod_of(*containers, meta=meta, **spec)


def some_stats(number: int, owner: Pod, chance: random.Random) -> PodStats:
    """No two pods use the same: what is equal the Go kubelet leaves to chance."""
    amount = chance.randrange(1, 500) * MIB + number
    volumes = {volume.name: chance.randrange(100) * MIB for volume in owner.spec.volumes}
    return using(
        owner,
        memory=amount,
        layer=chance.randrange(1, 300) * MIB + number,
        logs=chance.randrange(50) * MIB + 31 * number,
        processes=100 * number + chance.randrange(100),
        volumes=volumes,
    )


def scenario(signal: Signal, seed: int) -> Scenario:
    chance = random.Random(f"{signal}-{seed}")
    layouts = (DiskLayout(), DiskLayout(layers_apart=True), DiskLayout(images_apart=True))
    layout = layouts[seed % 3 if signal is not Signal.IMAGEFS else 1 + seed % 2]
    # Nobody has anything on a disk of images alone: then requests decide.
    pods = [some_pod(number, chance, all_request=layout.images_apart) for number in range(PODS)]
    # One pod at most has no figures: of several the Go kubelet takes any.
    unknown = chance.randrange(PODS * 2)
    stats = [some_stats(number, pod, chance) for number, pod in enumerate(pods) if number != unknown]
    low = disk(available=5 * GIB, inodes_free=20)
    figures = summary(
        *stats,
        free=300 * MIB,
        fs=low if signal in (Signal.NODEFS, Signal.NODEFS_INODES) else disk(available=99 * GIB, inodes_free=999),
        image_fs=low if signal is Signal.IMAGEFS else disk(available=99 * GIB, inodes_free=999),
        tasks=32000,
    )
    return Scenario(hard={signal: CROSSED[signal]}, pods=pods, summary=figures, layout=layout)


def ours(one: Scenario) -> Iterator[GoEviction]:
    """Round after round, as the manager would with a threshold that stays crossed."""
    ((name, amount),) = one.hard.items()
    signal = Signal(name)
    stats = {each.pod_ref.uid: each for each in one.summary.pods}
    left = [EvictionCandidate(pod=pod, stats=stats.get(pod.metadata.uid)) for pod in one.pods]
    seen = observe(one.summary)[signal]
    while True:
        ranked = [each for each in rank(left, signal, one.layout) if not each.critical]
        if not ranked:
            return
        first = ranked[0]
        text = eviction_text(first, Threshold(signal=signal, amount=amount), seen)
        yield GoEviction(first.pod.metadata.name, text.message, 1)
        left = [each for each in left if each.pod is not first.pod]


@pytest.fixture(scope="module", autouse=True)
def _go() -> None:
    if (missing := missing_eviction_requirement()) is not None:
        pytest.skip(f"NOT COMPARED WITH THE GO KUBELET: {missing}")


@pytest.mark.parametrize("signal", list(CROSSED))
def test_thirty_pods_of_all_classes_go_in_the_order_of_the_go_kubelet_with_its_messages(signal: Signal) -> None:
    scenarios = [scenario(signal, seed) for seed in range(SEEDS)]
    for seed, (one, theirs) in enumerate(zip(scenarios, evictions_of_go(scenarios), strict=True)):
        found = list(ours(one))
        assert len(theirs) > PODS / 3
        assert [each.pod for each in found] == [each.pod for each in theirs], seed
        assert found == theirs, seed


def limited(seed: int) -> Scenario:
    """Pods with limits of local storage, some above them."""
    chance = random.Random(f"limits-{seed}")
    pods, stats = [], []
    for number in range(PODS):
        limits = {"ephemeral-storage": f"{chance.randrange(50, 400)}Mi"} if chance.random() < 0.6 else {}
        size = {"sizeLimit": f"{chance.randrange(20, 100)}Mi"} if chance.random() < 0.5 else {}
        pod = pod_of(
            {"name": "main", "resources": {"limits": limits, "requests": limits}},
            meta={"name": f"p{number:02}", "uid": f"uid-{number:02}"},
            priority=chance.choice(PRIORITIES),
            volumes=[{"name": "data", "emptyDir": size}],
        )
        pods.append(pod)
        stats.append(some_stats(number, pod, chance))
    roomy = disk(available=99 * GIB, inodes_free=999)
    figures: Summary = summary(*stats, fs=roomy, image_fs=roomy)
    return Scenario(hard={}, pods=pods, summary=figures, layout=DiskLayout(layers_apart=bool(seed % 2)), limits=True)


def test_pods_above_their_own_limits_are_those_of_the_go_kubelet() -> None:
    scenarios = [limited(seed) for seed in range(SEEDS)]
    for one, theirs in zip(scenarios, evictions_of_go(scenarios), strict=True):
        stats = {each.pod_ref.uid: each for each in one.summary.pods}
        found = []
        for pod in one.pods:
            exceeded = limit_exceeded(pod, stats[pod.metadata.uid], layers_apart=one.layout.layers_apart)
            if exceeded is not None and not is_critical(pod):
                found.append(GoEviction(pod.metadata.name, exceeded.message, 1))
        assert sorted(each.pod for each in found) == sorted(each.pod for each in theirs)
        assert {each.pod: each for each in found} == {each.pod: each for each in theirs}
