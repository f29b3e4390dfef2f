"""reservedMemory must be what is reserved in all."""

from __future__ import annotations

import pytest

from glasslet.api.quantity import Quantity
from glasslet.managers.memory_reservation import MemoryReservationInvalid, reserved_by_node

GI = 1 << 30


def _amounts(**texts: str) -> dict[str, Quantity]:
    return {name.replace("_", "-"): Quantity.parse(text) for name, text in texts.items()}


def test_the_sum_over_nodes_is_the_reservation() -> None:
    reservations = [(0, _amounts(memory="1Gi")), (1, _amounts(memory="100Mi"))]
    reserved: tuple[dict[str, Quantity], ...] = (_amounts(memory="1Gi", cpu="1"), {}, _amounts(memory="100Mi"))
    assert reserved_by_node(reservations, (0, 1), reserved) == {0: {"memory": GI}, 1: {"memory": 100 << 20}}


@pytest.mark.parametrize(
    ("reservations", "text"),
    [
        (
            [(0, _amounts(memory="1Gi"))],
            'the total amount "1Gi" of type "memory" is not equal to the value "2Gi" determined by Node',
        ),
        ([], 'the total amount "0" of type "memory" is not equal to the value "2Gi"'),
        (
            [(4, _amounts(memory="2Gi"))],
            "the reserved memory configuration references a NUMA node 4 that does not exist on this machine",
        ),
    ],
)
def test_what_does_not_fit_is_refused(reservations: list[tuple[int, dict[str, Quantity]]], text: str) -> None:
    with pytest.raises(MemoryReservationInvalid, match=text):
        reserved_by_node(reservations, (0, 1), (_amounts(memory="2Gi"),))


def test_nothing_reserved_is_too_little() -> None:
    with pytest.raises(MemoryReservationInvalid, match="you should specify the system reserved memory"):
        reserved_by_node([], (0,), ())
