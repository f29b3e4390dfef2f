"""The node's addresses."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.node import NodeAddress
from glasslet.node.status.addresses import PROVIDED_IP, addresses, with_provided_ip
from tests.builders.node import settings

CLOUD = {"external_cloud": True}
OLD = (NodeAddress(type="ExternalIP", address="203.0.113.7"),)


def told(known: tuple[NodeAddress, ...], found: tuple[str, ...] | None, **changes: Any) -> list[tuple[str, str]]:
    return [(one.type, one.address) for one in addresses(known, settings(**changes), found)]


def test_internal_addresses_come_before_the_hostname() -> None:
    # behaviours.md §12: "Addresses: InternalIP (one per --node-ip family) then Hostname"
    assert told(OLD, ("10.1.2.3", "fd00::3")) == [
        ("InternalIP", "10.1.2.3"),
        ("InternalIP", "fd00::3"),
        ("Hostname", "n1"),
    ]


def test_known_addresses_stay_while_none_is_found() -> None:
    assert told(OLD, None) == [("ExternalIP", "203.0.113.7")]


def test_a_cloud_controller_keeps_what_it_wrote() -> None:
    # behaviours.md §12: "External cloud: existing addresses are kept as they are"
    assert told(OLD, ("10.1.2.3",), node_ips=("10.1.2.3",), **CLOUD) == [("ExternalIP", "203.0.113.7")]


def test_with_a_cloud_controller_only_the_hostname_is_told_first() -> None:
    # behaviours.md §12: "with none yet, only Hostname (without --node-ip)"
    assert told((), ("10.1.2.3",), **CLOUD) == [("Hostname", "n1")]


@pytest.mark.parametrize("given", ["10.1.2.3", "0.0.0.0"])
def test_with_a_cloud_controller_and_a_given_address_the_found_ones_are_told_first(given: str) -> None:
    # behaviours.md §12: "or the addresses found from --node-ip"
    assert told((), ("10.1.2.3",), node_ips=(given,), **CLOUD) == [("InternalIP", "10.1.2.3"), ("Hostname", "n1")]


@pytest.mark.parametrize(
    ("given", "annotation"),
    [(("10.1.2.3",), "10.1.2.3"), (("10.1.2.3", "fd00::3"), "10.1.2.3,fd00::3"), (("0.0.0.0",), None), ((), None)],
)
def test_a_cloud_controller_is_told_the_given_address(given: tuple[str, ...], annotation: str | None) -> None:
    # behaviours.md §12: "with external cloud and --node-ip alpha.kubernetes.io/provided-node-ip (two joined by
    # a comma)"
    changed = with_provided_ip({"x": "y"}, settings(node_ips=given, **CLOUD))
    assert changed.pop(PROVIDED_IP, None) == annotation
    assert changed == {"x": "y"}


def test_a_stale_annotation_goes_without_a_cloud_controller() -> None:
    # behaviours.md §12: "removed otherwise"
    assert with_provided_ip({PROVIDED_IP: "10.1.2.3"}, settings(node_ips=("10.1.2.3",))) == {}
