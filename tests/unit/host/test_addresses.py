from __future__ import annotations

import ipaddress

import pytest

from glasslet.host.addresses import (
    InterfaceAddress,
    NodeAddressInputs,
    NodeAddressUnknown,
    choose_node_ips,
    default_routes,
    interface_addresses,
)

INTERFACES = tuple(
    InterfaceAddress(name, ipaddress.ip_address(text))
    for name, text in (
        ("lo", "127.0.0.1"),
        ("eth0", "192.0.2.1"),
        ("eth1", "198.51.100.1"),
        ("eth0", "fe80::1"),
        ("eth0", "2001:db8::1"),
    )
)


def chosen(
    *requested: str, name: str = "node-1", looked_up: tuple[str, ...] = (), routes: tuple[tuple[int, str], ...] = ()
) -> tuple[str, ...]:
    return choose_node_ips(NodeAddressInputs(name, requested, looked_up, INTERFACES, routes))


# behaviours.md §12: "Node IP: --node-ip, else the host name if it is an IP, else DNS lookup of the node name (first
# usable of the preferred family), else the default-route interface; IPv4 preferred; loopback, link-local, multicast,
# unspecified refused; --node-ip must be on an interface."
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (chosen("198.51.100.1", looked_up=("192.0.2.1",)), ("198.51.100.1",)),
        (chosen("192.0.2.1", "2001:db8::1"), ("192.0.2.1", "2001:db8::1")),
        (chosen(name="10.1.2.3", looked_up=("192.0.2.1",)), ("10.1.2.3",)),
        (chosen(looked_up=("127.0.1.1", "2001:db8::1", "192.0.2.1")), ("192.0.2.1",)),
        (chosen(looked_up=("203.0.113.9", "2001:db8::1")), ("2001:db8::1",)),
        (chosen("::", looked_up=("192.0.2.1", "2001:db8::1")), ("2001:db8::1",)),
        (chosen("0.0.0.0", looked_up=("2001:db8::1", "192.0.2.1")), ("192.0.2.1",)),
        (chosen(looked_up=("127.0.1.1",), routes=((4, "eth1"), (4, "eth0"))), ("198.51.100.1",)),
        (chosen("::", routes=((4, "eth1"), (6, "eth0"))), ("2001:db8::1",)),
        (chosen("::", routes=((4, "eth1"),)), ("198.51.100.1",)),
        (chosen(routes=((6, "eth0"),)), ("2001:db8::1",)),
    ],
)
def test_the_nodes_address_is_the_first_that_can_be_had(found: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert found == expected


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        ("127.0.0.1", "nodeIP can't be loopback address"),
        ("224.0.0.1", "nodeIP can't be a multicast address"),
        ("fe80::1", "nodeIP can't be a link-local unicast address"),
        ("203.0.113.9", 'node IP: "203.0.113.9" not found in the host\'s network interfaces'),
        ("wrong", "--node-ip 'wrong' is no IP address"),
    ],
)
def test_an_address_that_cannot_be_the_nodes_is_refused(requested: str, message: str) -> None:
    with pytest.raises(NodeAddressUnknown, match=message):
        chosen(requested)


def test_a_node_without_any_address_is_told_what_to_do() -> None:
    with pytest.raises(NodeAddressUnknown, match=r"can't get ip address of node node-1: .* set --node-ip"):
        chosen(looked_up=("203.0.113.9",))


def test_default_routes_are_read_in_order() -> None:
    route4 = (
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        "eth1\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "eth0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    )
    nothing = "0" * 32
    route6 = (
        f"{nothing} 00 {nothing} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n"
        f"{nothing} 00 {nothing} 00 {nothing} ffffffff 00000001 00000000 00200200 lo\n"
    )
    assert default_routes(route4, route6) == ((4, "eth1"), (6, "eth0"))


def test_an_interface_with_an_odd_name_hides_no_default_route() -> None:
    odd = "a\x1cb\x85c"
    route4 = f"Iface\n{odd}\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0  \n"
    nothing = "0" * 32
    route6 = f"{nothing} 00 {nothing} 00 {'f' * 32} 00000400 00000001 00000000 00000003     {odd}\n"
    assert default_routes(route4, route6) == ((4, odd), (6, odd))


def test_this_machine_has_a_loopback_address() -> None:
    assert InterfaceAddress("lo", ipaddress.ip_address("127.0.0.1")) in interface_addresses()
