"""What changed between two sets of pods of one source. Rules: behaviours.md §1."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.pod_status import PodStatus
from glasslet.api.pod_update import UpdateKind
from glasslet.sources.merge import Known, Merged, Moment, merge

ORDINARY = PodSpec()
T0 = datetime(2026, 1, 1, tzinfo=UTC)
ADD, UPDATE, RECONCILE, DELETE, REMOVE = (
    UpdateKind.ADD, UpdateKind.UPDATE, UpdateKind.RECONCILE, UpdateKind.DELETE, UpdateKind.REMOVE,
)  # fmt: skip


def pod(name: str = "a", uid: str = "", *, spec: PodSpec = ORDINARY, phase: str = "", **meta: Any) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=uid or f"uid-{name}", **meta),
        spec=spec,
        status=PodStatus(phase=phase),
    )


def merged(pods: list[Pod], before: Merged | None = None, at: datetime = T0) -> Merged:
    return merge(before.known if before else {}, pods, "file", Moment(at, 5.0))


def kinds(result: Merged) -> list[tuple[UpdateKind, str]]:
    return [(update.kind, update.pod.metadata.name) for update in result.updates]


def change(before: Pod, after: Pod) -> list[UpdateKind]:
    return [update.kind for update in merged([after], merged([before])).updates]


def test_a_new_pod_is_added() -> None:
    assert kinds(merged([pod()])) == [(ADD, "a")]


def test_the_same_pod_is_no_change() -> None:
    assert change(pod(), pod()) == []


def test_a_pod_that_is_gone_is_removed() -> None:
    assert kinds(merged([], merged([pod()]))) == [(REMOVE, "a")]


@pytest.mark.parametrize(
    "after",
    [
        pod(spec=PodSpec(hostname="x")),
        pod(labels={"a": "b"}),
        pod(annotations={"a": "b"}),
        pod(deletion_grace_period_seconds=5),
    ],
    ids=["spec", "labels", "annotations", "deletion grace"],
)
def test_update_is_told_by(after: Pod) -> None:
    # behaviours.md §1: "Updates are told apart by spec, labels, annotations (without kubernetes.io/config.source,
    # .mirror, .seen), deletionTimestamp and deletionGracePeriodSeconds"
    assert change(pod(), after) == [UPDATE]


@pytest.mark.parametrize("key", ["source", "mirror", "seen"])
def test_our_own_annotations_are_no_change(key: str) -> None:
    assert change(pod(), pod(annotations={f"kubernetes.io/config.{key}": "x"})) == []


def test_a_status_only_difference_is_a_reconcile() -> None:
    # behaviours.md §1: "a status-only difference is a reconcile"
    assert change(pod(phase="Pending"), pod(phase="Running")) == [RECONCILE]


def test_other_metadata_is_no_change() -> None:
    assert change(pod(), pod(resource_version="2", finalizers=("a/b",))) == []


def test_a_deletion_timestamp_is_a_delete() -> None:
    assert change(pod(), pod(deletion_timestamp=T0)) == [DELETE]


def test_another_uid_is_another_pod() -> None:
    assert kinds(merged([pod(uid="new")], merged([pod(uid="old")]))) == [(REMOVE, "a"), (ADD, "a")]


def test_removes_come_before_adds_and_reconciles_last() -> None:
    before = merged([pod("r"), pod("u"), pod("d"), pod("s")])
    after = [pod("n"), pod("u", labels={"a": "b"}), pod("d", deletion_timestamp=T0), pod("s", phase="Running")]
    assert kinds(merged(after, before)) == [(REMOVE, "r"), (ADD, "n"), (UPDATE, "u"), (DELETE, "d"), (RECONCILE, "s")]


def test_new_pods_are_sorted_by_creation_time() -> None:
    # behaviours.md §1: "New pods of a batch are sorted by creation time"
    young, old = pod("young", creation_timestamp=T0.replace(year=2027)), pod("old", creation_timestamp=T0)
    assert kinds(merged([young, old])) == [(ADD, "old"), (ADD, "young")]


def test_a_duplicate_name_in_one_set_is_left_out() -> None:
    # behaviours.md §1: "a duplicate namespace/name inside one source's set is ignored"
    first, second = pod(uid="1"), pod(uid="2")
    result = merged([first, second])
    assert (kinds(result), result.duplicates) == ([(ADD, "a")], (second,))


def test_a_duplicate_uid_in_one_set_is_left_out() -> None:
    assert merged([pod("a", "1"), pod("b", "1")]).duplicates == (pod("b", "1"),)


def test_source_and_first_sight_are_annotated() -> None:
    # behaviours.md §13: "config.source = file|http|api ... config.seen = time seen (RFC3339 with 9 fraction digits)"
    annotations = merged([pod()]).updates[0].pod.metadata.annotations
    assert annotations == {
        "kubernetes.io/config.source": "file",
        "kubernetes.io/config.seen": "2026-01-01T00:00:00.000000000Z",
    }


def test_first_sight_stays_when_the_pod_changes() -> None:
    later = merged([pod(labels={"a": "b"})], merged([pod()]), at=T0.replace(year=2027))
    assert later.updates[0].pod.metadata.annotations["kubernetes.io/config.seen"].startswith("2026")


def test_the_very_same_object_is_not_compared_again() -> None:
    one = pod()
    before = merged([one])
    assert merged([one], before).known[PodUID("uid-a")] is before.known[PodUID("uid-a")]


names = st.sampled_from("abcd")
pods = st.builds(
    lambda name, uid, label, phase: pod(name, f"{name}{uid}", labels={"x": label}, phase=phase),
    names, st.sampled_from("12"), st.sampled_from("pq"), st.sampled_from(["Pending", "Running"]),
)  # fmt: skip


@given(st.lists(st.lists(pods, max_size=6), max_size=6))
def test_the_updates_add_up_to_the_set(sets: list[list[Pod]]) -> None:
    followed: dict[str, Pod] = {}
    known: dict[PodUID, Known] = {}
    for pods_now in sets:
        result = merge(known, pods_now, "file", Moment(T0, 0.0))
        known = result.known
        for update in result.updates:
            uid = update.pod.metadata.uid
            assert (uid in followed) == (update.kind is not ADD)
            if update.kind is REMOVE:
                del followed[uid]
            else:
                followed[uid] = update.pod
    assert followed == {str(uid): entry.pod for uid, entry in known.items()}


@given(st.lists(pods, max_size=6))
def test_giving_the_same_set_twice_changes_nothing(pods_now: list[Pod]) -> None:
    before = merged(pods_now)
    assert merged([replace(one) for one in pods_now], before).updates == ()
