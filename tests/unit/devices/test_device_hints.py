"""NUMA nodes of devices: hints, and devices chosen by the nodes."""

from __future__ import annotations

import pytest

from glasslet.devices.allocation_plan import AllocationStep, Demand, DeviceAsk, Held, Ids, Stock, choose, plan
from glasslet.devices.device_hints import container_hints, free_by_node
from glasslet.exchange.numa import NUMAHint, mask_of

GPU = "example.com/gpu"
PLACES = {"a": mask_of([0]), "b": mask_of([0]), "c": mask_of([1]), "d": mask_of([1])}


def _stock(names: str, taken: str = "", places: dict[str, int] | None = None) -> Stock:
    places = PLACES if places is None else places
    return Stock(healthy={GPU: frozenset(names)}, taken={GPU: frozenset(taken)}, places={GPU: places} if places else {})


def _hints(amount: int, stock: Stock, has: Ids | None = None, reusable: str = "") -> object:
    ask = DeviceAsk(
        container="main", resource=GPU, amount=amount, has=has, taken=stock.taken[GPU], reusable=frozenset(reusable)
    )
    return container_hints([ask], stock, (0, 1))[GPU]


def _step(amount: int, stock: Stock, mask: int | None) -> AllocationStep:
    found = plan([Demand(container="main", amounts={GPU: amount})], stock, Held(pod_uid="u", near={"main": mask}))
    assert isinstance(found, tuple)
    return found[0]


def test_devices_without_places_have_no_opinion() -> None:
    assert _hints(1, _stock("xy", places={})) is None


def test_as_few_nodes_as_would_do_are_preferred() -> None:
    assert _hints(2, _stock("abcd")) == [NUMAHint(1, True), NUMAHint(2, True), NUMAHint(3, False)]
    # With node 0 in use two devices of two nodes are left: not preferred, one node would do if it were free.
    assert _hints(2, _stock("abcd", taken="ac")) == [NUMAHint(3, False)]
    assert _hints(3, _stock("abcd")) == [NUMAHint(3, True)]


def test_too_few_free_ones_fit_nowhere() -> None:
    assert _hints(3, _stock("abcd", taken="ab")) == []


def test_devices_that_the_container_has_speak_for_it() -> None:
    assert _hints(1, _stock("abcd", taken="c"), has=frozenset("c")) == [NUMAHint(2, True), NUMAHint(3, False)]
    assert _hints(2, _stock("abcd", taken="c"), has=frozenset("c")) == []


def test_devices_of_an_init_container_hold_later_ones_to_their_nodes() -> None:
    assert _hints(2, _stock("abcd", taken="a"), reusable="a") == [NUMAHint(1, True), NUMAHint(3, False)]


@pytest.mark.parametrize(
    ("amount", "mask", "ids"), [(1, 2, "c"), (2, 2, "cd"), (3, 2, "acd"), (2, None, "ab"), (5, 2, "abcdx")]
)
def test_devices_of_the_chosen_nodes_come_first(amount: int, mask: int | None, ids: str) -> None:
    assert _step(amount, _stock("abcdx"), mask).ids == set(ids)


def test_a_plugin_chooses_among_devices_of_the_chosen_nodes() -> None:
    step = _step(1, _stock("abcd"), 2)
    assert choose(step, ["a", "d"]) == {"d"}
    step = _step(3, _stock("abcd"), 2)
    assert choose(step, ["b"]) == {"b", "c", "d"}


def test_free_devices_are_counted_by_node() -> None:
    assert free_by_node(GPU, _stock("abcd", taken="a")) == {0: "1", 1: "2"}
