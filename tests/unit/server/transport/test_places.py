"""Strangers displace strangers, one source displaces itself first, and the API server always finds a place."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from glasslet.server.transport.limits import ConnectionLimits
from glasslet.server.transport.places import FAMILIAR, LEARNED, ConnectionPlace, Places, source_of

LIMITS = ConnectionLimits(
    connections=12, known_per_source=3, strangers=8, strangers_per_source=3, reserved=2, familiar=1
)
API_SERVER, MALLORY, ALICE = "192.0.2.1", "192.0.2.66", "192.0.2.7"


@dataclass
class World:
    """A port whose clock stands still unless a test moves it."""

    now: float = 100.0
    evicted: list[str] = field(default_factory=list)
    api_server: tuple[str, ...] = (API_SERVER,)
    limits: ConnectionLimits = LIMITS

    def __post_init__(self) -> None:
        self.places = Places(self.limits, now=lambda: self.now, api_server=lambda: self.api_server)

    def take(self, address: str, name: str = "") -> ConnectionPlace | None:
        return self.places.take(address, lambda: self.evicted.append(name or address))

    def known(self, address: str) -> ConnectionPlace:
        place = self.take(address)
        assert place is not None
        self.places.prove(place)
        return place


def test_one_source_has_few_places_for_strangers() -> None:
    world = World()
    assert [world.take(MALLORY) is not None for _ in range(5)] == [True, True, True, False, False]
    assert world.take(ALICE) is not None


def test_after_a_second_the_oldest_stranger_of_a_source_makes_room_for_its_newest() -> None:
    world = World()
    for name in ("first", "second", "third"):
        world.take(MALLORY, name)
    world.now += 1
    assert world.take(MALLORY, "fourth") is not None
    assert world.evicted == ["first"]
    assert len(world.places) == 3


def test_when_strangers_are_too_many_the_greediest_source_makes_room() -> None:
    world = World()
    for name in ("a", "b", "c"):
        world.take(MALLORY, name)
    for number in range(3):
        world.take(f"198.51.100.{number}")
    world.now += 1
    assert world.take(ALICE) is not None
    assert world.evicted == ["a"]


def test_strangers_of_many_sources_leave_the_reserved_places_to_the_api_server() -> None:
    world = World()
    taken = [world.take(f"198.51.100.{number}") is not None for number in range(8)]
    assert taken == [True] * 6 + [False] * 2
    assert [world.take(API_SERVER) is not None for _ in range(2)] == [True, True]


def test_strangers_never_displace_known_connections() -> None:
    world = World()
    known = [world.known(f"203.0.113.{number}") for number in range(10)]
    world.now += 60
    assert world.take(MALLORY) is None
    assert world.take(API_SERVER) is not None
    assert world.evicted == []
    assert all(place.known for place in known)


def test_known_connections_make_strangers_give_way() -> None:
    world = World()
    for number in range(9):
        world.known(f"203.0.113.{number}")
    world.take(MALLORY, "mallory")
    world.now += 1
    assert world.take(ALICE) is not None
    assert world.evicted == ["mallory"]


def test_one_source_has_a_share_of_the_known_connections() -> None:
    world = World()
    places = [world.known(MALLORY) for _ in range(4)]
    assert [place.known for place in places] == [True, True, True, False]


def test_api_server_is_under_no_limit_per_source() -> None:
    world = World()
    assert all(world.known(API_SERVER).known for _ in range(6))
    assert all(world.take(API_SERVER) is not None for _ in range(6))


def test_address_that_authorized_with_a_certificate_counts_as_the_api_servers() -> None:
    world = World(api_server=())
    for number in range(6):
        world.take(f"198.51.100.{number}")
    assert world.take(API_SERVER) is None
    world.places.learn_api_server(API_SERVER)
    assert world.take(API_SERVER) is not None


@pytest.mark.parametrize("familiar", [True, False])
def test_familiar_source_gets_in_behind_a_crowd(familiar: bool) -> None:
    world = World()
    if familiar:
        world.places.learn_familiar(ALICE)
    for number in range(6):
        world.take(f"198.51.100.{number}")
    assert (world.take(ALICE) is not None) is familiar


def test_familiar_sources_leave_places_to_the_api_server() -> None:
    world = World()
    sources = [f"203.0.113.{number}" for number in range(8)]
    for source in sources:
        world.places.learn_familiar(source)
    for source in sources * 4:
        if (place := world.take(source)) is not None:
            world.places.prove(place)
    assert world.take(API_SERVER) is not None


def test_one_familiar_source_has_few_of_the_reserved_places() -> None:
    limits = replace(LIMITS, strangers_per_source=7, reserved=6, familiar=6, familiar_per_source=2)
    places = Places(limits, now=lambda: 100.0, api_server=tuple)
    places.learn_familiar(ALICE)
    for number in range(2):
        assert places.take(f"198.51.100.{number}", lambda: None) is not None
    assert [places.take(ALICE, lambda: None) is not None for _ in range(3)] == [True, True, False]


def test_familiar_sources_are_bounded() -> None:
    world = World()
    for number in range(FAMILIAR + 1):
        world.places.learn_familiar(f"10.{number % 200}.{number // 200}.1")
    for number in range(6):
        world.take(f"198.51.100.{number}")
    assert world.take("10.0.0.1") is None
    assert world.take("10.1.0.1") is not None


ARRIVALS = replace(
    LIMITS,
    connections=10_000,
    strangers=10_000,
    strangers_per_source=10_000,
    reserved=0,
    arrivals_per_source=20,
    arrivals_per_source_second=2.0,
    arrivals=50,
    arrivals_per_second=5.0,
)


def arrived(world: World, source: str, count: int) -> int:
    return sum(world.take(source) is not None for _ in range(count))


def test_one_source_has_a_rate_of_new_connections() -> None:
    # Each costs a TLS handshake, also when it leaves at once.
    world = World(limits=ARRIVALS)
    assert arrived(world, MALLORY, 100) == 20
    world.now += 3
    assert arrived(world, MALLORY, 100) == 6
    assert arrived(world, ALICE, 1) == 1


def test_a_crowd_has_a_rate_of_new_connections_that_binds_neither_familiar_sources_nor_the_api_server() -> None:
    world = World(limits=ARRIVALS)
    world.places.learn_familiar(ALICE)
    assert sum(arrived(world, f"198.51.100.{number}", 1) for number in range(200)) == 50
    world.now += 3
    assert sum(arrived(world, f"198.51.101.{number}", 1) for number in range(200)) == 15
    assert arrived(world, ALICE, 100) == 20
    assert arrived(world, API_SERVER, 1000) == 1000


def test_learned_addresses_are_bounded() -> None:
    world = World(api_server=())
    for number in range(LEARNED + 1):
        world.places.learn_api_server(f"10.0.{number}.1")
    for number in range(6):
        world.take(f"198.51.100.{number}")
    assert world.take("10.0.0.1") is None
    assert world.take("10.0.1.1") is not None


def test_a_place_that_was_left_is_free_again() -> None:
    world = World()
    place = world.take(MALLORY)
    known = world.known(ALICE)
    assert place is not None
    for _ in range(2):
        world.places.leave(place)
        world.places.leave(known)
    assert (len(world.places), world.places.strangers) == (0, 0)


def test_evicted_stranger_does_not_become_known() -> None:
    world = World()
    first = world.take(MALLORY)
    assert first is not None
    for _ in range(2):
        world.take(MALLORY)
    world.now += 1
    world.take(MALLORY)
    world.places.prove(first)
    assert not first.known


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
    ],
)
def test_source_of_an_address(address: str, source: str) -> None:
    assert source_of(address) == source
