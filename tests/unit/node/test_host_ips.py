"""What pods are told as their host's addresses."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from glasslet.api.node import NodeAddress
from glasslet.node.status.addresses import host_ips
from tests.builders.node import node


@pytest.mark.parametrize(
    ("addresses", "told"),
    [
        ("Hostname=n1", ()),
        ("InternalIP=10.0.0.1 Hostname=n1", ("10.0.0.1",)),
        ("InternalIP=10.0.0.1 InternalIP=10.0.0.2 InternalIP=fd00::1", ("10.0.0.1", "fd00::1")),
        ("ExternalIP=203.0.113.1 InternalIP=fd00::1", ("fd00::1", "203.0.113.1")),
        ("ExternalIP=203.0.113.1", ("203.0.113.1",)),
        ("InternalIP=nonsense", ()),
    ],
)
def test_internal_addresses_come_first_and_one_of_each_family_is_told(addresses: str, told: tuple[str, ...]) -> None:
    pairs = (text.split("=") for text in addresses.split())
    listed = tuple(NodeAddress(type=kind, address=ip) for kind, ip in pairs)
    assert host_ips(replace(node(), status=replace(node().status, addresses=listed))) == told
