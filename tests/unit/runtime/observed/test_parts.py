"""Parts of a pod that were read alone."""

from __future__ import annotations

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.runtime.observed.parts import PartRead, ReadOrder, with_part, with_parts
from tests.builders.observed import exited_container, observed_container, observed_pod, observed_sandbox

REF = PodRef("default", "web", PodUID("uid-1"))
UID = PodUID("uid-1")


def test_the_first_part_makes_the_pod() -> None:
    sandbox = observed_sandbox()
    pod = with_part(None, REF, PartRead(1, sandbox.id, sandbox), observed_at=3.0)
    assert pod == observed_pod(observed_at=3.0)


def test_a_part_takes_its_place_by_age() -> None:
    old, new = exited_container(attempt=0), observed_container(attempt=1)
    pod = with_part(observed_pod(old), REF, PartRead(1, new.id, new), observed_at=0.0)
    assert pod == observed_pod(new, old)


def test_a_part_replaces_what_was_known_of_it_and_leaves_the_rest() -> None:
    other, before = observed_container("other"), observed_container("main")
    after = exited_container("main", code=2)
    pod = with_part(observed_pod(other, before), REF, PartRead(1, after.id, after), observed_at=0.0)
    assert pod == observed_pod(other, after)


def test_without_its_last_part_nothing_is_left_of_the_pod() -> None:
    sandbox = observed_sandbox()
    assert with_part(observed_pod(), REF, PartRead(1, sandbox.id, None), observed_at=0.0) is None


def test_a_part_read_later_than_the_whole_knows_better() -> None:
    order = ReadOrder()
    whole = order.begin_whole()
    container = observed_container()
    read = PartRead(order.begin_part(UID), container.id, container)
    assert order.takes_part(UID, read)
    order.end_part(UID)
    newer = order.took_whole(UID, whole)
    assert with_parts(observed_pod(), REF, newer, observed_at=0.0) == observed_pod(container)


def test_a_part_that_is_gone_is_not_brought_back_by_an_older_read() -> None:
    order = ReadOrder()
    whole = order.begin_whole()
    container = observed_container()
    order.takes_part(UID, PartRead(order.begin_part(UID), container.id, None))
    order.end_part(UID)
    newer = order.took_whole(UID, whole)
    assert with_parts(observed_pod(container), REF, newer, observed_at=0.0) == observed_pod()


def test_a_part_read_before_the_whole_is_dropped_when_it_comes_after_it() -> None:
    order = ReadOrder()
    read = PartRead(order.begin_part(UID), "main-0", observed_container())
    assert order.took_whole(UID, order.begin_whole()) == ()
    assert not order.takes_part(UID, read)


def test_of_two_reads_of_one_part_the_one_that_began_last_counts() -> None:
    order = ReadOrder()
    first, second = (PartRead(order.begin_part(UID), "main-0", observed_container()) for _ in range(2))
    assert order.takes_part(UID, second)
    assert not order.takes_part(UID, first)


def test_reads_of_the_past_do_not_outlive_a_read_of_the_whole() -> None:
    order = ReadOrder()
    order.takes_part(UID, PartRead(order.begin_part(UID), "main-0", observed_container()))
    order.end_part(UID)
    assert order.took_whole(UID, order.begin_whole()) == ()
