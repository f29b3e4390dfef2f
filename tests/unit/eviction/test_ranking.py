"""The order in which pods are evicted."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasslet.api.container import ResourceRequirements
from glasslet.eviction.ranking import EvictionCandidate, memory_request, rank, storage_request
from glasslet.eviction.signals import Signal, what_is_on_disk_of
from glasslet.stats.disks.storage import DiskLayout
from tests.builders.admission import amounts
from tests.builders.eviction import MIB, empty_dir, running, wanting

ONE_DISK = DiskLayout()
LAYERS_APART = DiskLayout(layers_apart=True)
IMAGES_APART = DiskLayout(images_apart=True)


def order(signal: Signal, *candidates: EvictionCandidate, layout: DiskLayout = ONE_DISK) -> list[str]:
    return [one.pod.metadata.name for one in rank(candidates, signal, layout)]


def test_memory_above_request_then_priority_then_excess() -> None:
    # behaviours.md §15: "Memory: usage above request first, then lower priority, then usage minus request."
    assert order(
        Signal.MEMORY,
        running(wanting("below", memory="100Mi"), memory=90 * MIB),
        running(wanting("important", priority=1000), memory=500 * MIB),
        running(wanting("little-above", memory="100Mi"), memory=110 * MIB),
        running(wanting("much-above", memory="100Mi"), memory=190 * MIB),
    ) == ["much-above", "little-above", "important", "below"]


def test_a_pod_without_figures_goes_before_all_others() -> None:
    # behaviours.md §15: "Ranking (pods without stats always first)."
    waiting = EvictionCandidate(pod=wanting("waiting", priority=9))
    assert order(Signal.MEMORY, running(wanting("hog"), memory=500 * MIB), waiting) == ["waiting", "hog"]


def test_process_ids_by_priority_then_by_number() -> None:
    # behaviours.md §15: "PIDs: priority, then process count."
    assert order(
        Signal.PIDS,
        running(wanting("few"), processes=2),
        running(wanting("important", priority=5), processes=900),
        running(wanting("many"), processes=300),
        EvictionCandidate(pod=wanting("waiting")),
    ) == ["waiting", "many", "few", "important"]


def test_one_disk_counts_layers_logs_and_volumes() -> None:
    # behaviours.md §15: "Counted per file system: single: rootfs, logs, local volumes;"
    scratch = empty_dir("scratch")
    pods = (
        running(wanting("layer"), layer=30),
        running(wanting("logs"), logs=40),
        running(wanting("volume", volumes=(scratch,)), volumes={"scratch": 50}),
        running(wanting("memory-volume", volumes=(empty_dir("scratch", medium="Memory"),)), volumes={"scratch": 99}),
    )
    for signal in (Signal.NODEFS, Signal.IMAGEFS, Signal.CONTAINERFS_INODES):
        assert order(signal, *pods) == ["volume", "logs", "layer", "memory-volume"]


def test_a_disk_of_its_own_for_images_counts_layers_there_and_the_rest_here() -> None:
    # behaviours.md §15: "separate imagefs: nodefs = logs + local volumes, imagefs = rootfs (+ images);"
    layer, logs = running(wanting("layer"), layer=70), running(wanting("logs"), logs=10)
    assert order(Signal.NODEFS, layer, logs, layout=LAYERS_APART) == ["logs", "layer"]
    assert order(Signal.IMAGEFS, logs, layer, layout=LAYERS_APART) == ["layer", "logs"]
    assert order(Signal.CONTAINERFS, logs, layer, layout=LAYERS_APART) == ["layer", "logs"]


def test_a_storage_request_in_bytes_is_taken_from_inodes() -> None:
    asks, plain = wanting("asks", storage="1Mi"), wanting("plain")
    assert order(Signal.NODEFS_INODES, running(asks, layer=900), running(plain, layer=5)) == ["plain", "asks"]


def test_overhead_counts_for_pods_that_request_the_resource() -> None:
    overhead = amounts(memory="20Mi")
    assert memory_request(wanting("plain", overhead=overhead)) == 0
    assert memory_request(wanting("asks", memory="10Mi", overhead=overhead)) == 30 * MIB


def test_critical_pods_are_marked() -> None:
    ranked = rank([running(wanting("system", priority=2_000_000_000), memory=MIB)], Signal.MEMORY, DiskLayout())
    assert [one.critical for one in ranked] == [True]


def test_container_requests_do_not_count_beside_pod_level_resources() -> None:
    own = ResourceRequirements(requests=amounts(memory="64Mi"))
    assert storage_request(wanting("pod-level", storage="1Gi", resources=own)) == 0


def test_where_only_images_are_apart_a_pod_has_everything_on_the_nodes_disk_and_nothing_on_theirs() -> None:
    # behaviours.md §15: "split: nodefs/containerfs = logs, local volumes, rootfs,"
    layer, logs = running(wanting("layer"), layer=70), running(wanting("logs", priority=1), logs=900)
    ranked = rank([logs, layer], Signal.IMAGEFS, IMAGES_APART)
    assert [(one.pod.metadata.name, one.usage) for one in ranked] == [("layer", 0), ("logs", 0)]
    for signal in (Signal.NODEFS, Signal.CONTAINERFS):
        assert [one.usage for one in rank([layer, logs], signal, IMAGES_APART)] == [70, 900]


@pytest.mark.parametrize(
    ("layout", "garbage"),
    [
        (ONE_DISK, {Signal.NODEFS: 2, Signal.IMAGEFS: 2, Signal.CONTAINERFS: 2}),
        (LAYERS_APART, {Signal.NODEFS: 0, Signal.IMAGEFS: 2, Signal.CONTAINERFS: 2}),
        (IMAGES_APART, {Signal.NODEFS: 1, Signal.IMAGEFS: 1, Signal.CONTAINERFS: 1}),
    ],
)
def test_only_garbage_on_the_disk_in_question_is_removed(layout: DiskLayout, garbage: dict[Signal, int]) -> None:
    assert {signal: len(what_is_on_disk_of(signal, layout).garbage) for signal in garbage} == garbage
    assert not what_is_on_disk_of(Signal.MEMORY, layout).garbage
    assert not what_is_on_disk_of(Signal.PIDS, layout).garbage


@given(
    pods=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200), st.integers(-3, 3), st.booleans()), max_size=12)
)
def test_a_pod_within_its_request_never_goes_before_one_above_it(pods: list[tuple[int, int, int, bool]]) -> None:
    candidates = []
    for number, (usage, request, priority, known) in enumerate(pods):
        pod = wanting(f"p{number}", memory=str(request) if request else "", priority=priority)
        candidates.append(running(pod, memory=usage) if known else EvictionCandidate(pod=pod))
    ranked = rank(candidates, Signal.MEMORY, DiskLayout())
    assert len(ranked) == len(candidates)
    above = [one.above_request for one in ranked]
    assert above == sorted(above, reverse=True)
    assert [one.usage is None for one in ranked] == sorted((one.usage is None for one in ranked), reverse=True)
    for one, next_one in pairwise(ranked):
        if (one.usage is None, one.above_request) == (next_one.usage is None, next_one.above_request):
            assert one.priority <= next_one.priority


LAYOUTS = st.builds(DiskLayout, layers_apart=st.booleans(), images_apart=st.booleans())
USES = st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), st.integers(-2, 2))


@given(signal=st.sampled_from(Signal), layout=LAYOUTS, uses=st.lists(USES, max_size=10), chance=st.randoms())
def test_the_order_is_the_same_however_the_pods_are_listed_and_no_pod_is_behind_a_better_one(
    signal: Signal, layout: DiskLayout, uses: list[tuple[int, int, int, int, int]], chance: random.Random
) -> None:
    candidates = [
        running(wanting(f"p{number}", priority=priority), memory=memory, layer=layer, logs=logs, processes=processes)
        for number, (memory, layer, logs, processes, priority) in enumerate(uses)
    ]
    ranked = rank(candidates, signal, layout)
    chance.shuffle(candidates)
    again = rank(candidates, signal, layout)
    assert [(one.priority, one.usage) for one in ranked] == [(one.priority, one.usage) for one in again]
    assert {one.pod.metadata.name for one in ranked} == {one.pod.metadata.name for one in candidates}
    for one, behind in pairwise(ranked):
        if one.above_request == behind.above_request:
            assert (one.priority, -(one.usage or 0)) <= (behind.priority, -(behind.usage or 0))


@given(uses=USES, chance=st.sampled_from((Signal.NODEFS, Signal.IMAGEFS, Signal.CONTAINERFS)), layout=LAYOUTS)
def test_what_a_pod_has_on_all_different_disks_is_what_it_has(
    uses: tuple[int, int, int, int, int], chance: Signal, layout: DiskLayout
) -> None:
    _, layer, logs, _, _ = uses
    pod = running(wanting("p"), layer=layer, logs=logs)

    def on(signal: Signal) -> int:
        return rank([pod], signal, layout)[0].usage or 0

    assert 0 <= on(chance) <= layer + logs
    assert on(Signal.NODEFS) + (on(Signal.CONTAINERFS) if layout.layers_apart else 0) == layer + logs
