"""Which images go. Quotes: behaviours.md §8."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.runtime.garbage.image_rules import (
    Disk,
    ImageHistory,
    ImageLimits,
    ImageUse,
    bytes_to_free,
    old_enough,
    too_old,
    used_images,
    without_handlers,
)
from glasslet.runtime.model import ContainerPhase, Image, ObservedContainer, ObservedPod

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def later(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def image(name: str, *, pinned: bool = False, size: int = 10) -> Image:
    return Image(id=f"sha256:{name}", tags=(f"r.example/{name}:1",), size=size, pinned=pinned)


def pod(**parts: Any) -> ObservedPod:
    container = ObservedContainer(
        id=ContainerID("c"),
        name="main",
        attempt=0,
        phase=ContainerPhase.EXITED,
        sandbox_id=SandboxID("s"),
        created_at=NOON,
        **parts,
    )
    return ObservedPod(uid=PodUID("u"), name="web", namespace="default", containers=(container,))


A, B, C = (image(name) for name in "abc")


# "skips used by any container (dead too), pinned"
@pytest.mark.parametrize(
    "parts",
    [
        {"image_id": A.id},
        {"image_ref": A.id},
        {"image_ref": "r.example/a@sha256:1", "image": A.tags[0]},
    ],
)
def test_an_image_of_a_dead_container_is_in_use_whatever_the_runtime_calls_it(parts: dict[str, str]) -> None:
    assert used_images([A, B], [pod(**parts)], []) == {A.id}


def test_an_image_that_a_pod_names_is_in_use() -> None:
    library = Image(id="sha256:l", tags=("docker.io/library/busybox:latest",))
    assert used_images([library, A, B], [], ["busybox", A.tags[0], "Not A Name", ""]) == {library.id, A.id}


def test_pinned_images_never_go() -> None:
    unused = ImageHistory().look([image("a", pinned=True), B], frozenset(), NOON)
    assert [use.image.id for use in unused] == [B.id]


# "order: last used, then first detected"
def test_what_was_used_longest_ago_goes_first_and_what_was_never_used_before_that() -> None:
    history = ImageHistory()
    history.look([A], frozenset({A.id}), later(0))
    history.look([A, B], frozenset({B.id}), later(5))
    history.look([A, B, C], frozenset(), later(10))
    new = image("d")
    unused = history.look([A, B, C, new], frozenset(), later(15))
    assert [use.image.id for use in unused] == [C.id, new.id, A.id, B.id]


def test_an_image_that_comes_back_is_a_new_one() -> None:
    history = ImageHistory()
    history.look([A], frozenset({A.id}), later(0))
    history.look([], frozenset(), later(5))
    (use,) = history.look([A], frozenset(), later(10))
    assert (use.first_seen, use.last_used) == (later(10), None)


# "and those younger than imageMinimumGCAge"
def test_what_was_just_pulled_stays() -> None:
    use = ImageUse(image=A, first_seen=NOON)
    limits = ImageLimits(minimum_age=timedelta(minutes=2))
    assert old_enough([use], limits, later(1.9)) == ()
    assert old_enough([use], limits, later(2)) == (use,)


# "deletes any unused image older than imageMaximumGCAge, only after the kubelet itself ran that long"
def test_age_counts_from_the_last_use_that_this_agent_saw() -> None:
    limits = ImageLimits(maximum_age=timedelta(hours=1))
    never = ImageUse(image=A, first_seen=NOON)
    once = ImageUse(image=B, first_seen=NOON, last_used=later(30))
    assert too_old([never, once], limits, later(60)) == ()
    assert too_old([never, once], limits, later(61)) == (never,)
    assert too_old([never, once], limits, later(91)) == (never, once)
    assert too_old([never, once], ImageLimits(), later(10**6)) == ()


# "Starts at usage >= high, frees until low"
@pytest.mark.parametrize(
    ("available", "wanted"), [(200, 0), (160, 0), (159, 41), (150, 50), (100, 100), (0, 200), (10**6, 0)]
)
def test_cleaning_begins_at_the_high_mark_and_goes_on_to_the_low_one(available: int, wanted: int) -> None:
    assert bytes_to_free(Disk(capacity=1000, available=available), ImageLimits()) == wanted


# "off when the high threshold is 100 and the max age 0"
def test_it_is_off_only_without_both_limits() -> None:
    assert ImageLimits(high_percent=100).off
    assert not ImageLimits(high_percent=99).off
    assert not ImageLimits(high_percent=100, maximum_age=timedelta(1)).off


# "Images keyed per runtime handler only with gate RuntimeClassInImageCriAPI (alpha, off)."
def test_a_container_uses_the_image_of_its_handler_only_where_handlers_have_their_own() -> None:
    ours, theirs = replace(A, runtime_handler="kata"), A
    user = pod(image_ref=A.id, image_handler="kata")
    assert used_images([ours, theirs], [user], [], by_handler=True) == {f"{A.id},kata"}
    assert used_images([theirs], [user], [], by_handler=True) == frozenset()
    shared = without_handlers([ours, theirs])
    assert shared == (A,)
    assert used_images(shared, [user], []) == {A.id}
