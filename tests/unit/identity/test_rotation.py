"""When certificates are replaced, and what a serving certificate has to say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from glasslet.api.node import NodeAddress
from glasslet.identity.certificate import Certificate, Subject
from glasslet.identity.rotation import node_subject, renewal_moment, satisfies, serving_subject

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def certificate(subject: Subject, days: int = 100) -> Certificate:
    return Certificate(subject=subject, not_before=BEGIN, not_after=BEGIN + timedelta(days=days))


@pytest.mark.parametrize(("share", "days"), [(0.0, 70), (0.5, 80), (1.0, 90)])
def test_renewal_is_between_70_and_90_percent_of_life(share: float, days: int) -> None:
    # behaviours.md §28: "Renewal moment: random at 70..90 % of life from notBefore."
    assert renewal_moment(certificate(node_subject("a")), share) == BEGIN + timedelta(days=days)


def test_node_is_named_as_the_authorizer_wants_it() -> None:
    # behaviours.md §28: "CN system:node:<name>, O system:nodes"
    assert node_subject("node-1") == Subject(common_name="system:node:node-1", organizations=("system:nodes",))


def addresses(*pairs: tuple[str, str]) -> list[NodeAddress]:
    return [NodeAddress(type=kind, address=address) for kind, address in pairs]


def test_serving_certificate_names_what_the_node_reports() -> None:
    # behaviours.md §28: "SANs node DNS names and IPs"
    subject = serving_subject(
        "n",
        addresses(
            ("InternalIP", "10.0.0.2"),
            ("InternalIP", "fd00:0::1"),
            ("ExternalIP", "10.0.0.1"),
            ("Hostname", "n"),
            ("InternalDNS", "n.internal"),
            ("ExternalDNS", "n.example"),
            ("InternalDNS", "n.internal"),
        ),
    )
    assert subject is not None
    assert subject.dns_names == ("n", "n.example", "n.internal")
    assert subject.ip_addresses == ("10.0.0.1", "10.0.0.2", "fd00::1")


def test_host_name_that_is_an_address_is_an_address() -> None:
    subject = serving_subject("n", addresses(("Hostname", "10.0.0.1")))
    assert subject is not None
    assert (subject.dns_names, subject.ip_addresses) == ((), ("10.0.0.1",))


def test_no_serving_certificate_without_an_ip_address() -> None:
    # behaviours.md §28: "asked for only once an IP address is known (gate AllowDNSOnlyNodeCSR off)"
    names = addresses(("Hostname", "n"), ("InternalIP", ""))
    assert serving_subject("n", names) is None
    assert serving_subject("n", names, names_alone=True) is not None
    assert serving_subject("n", [], names_alone=True) is None


def test_certificate_may_say_more_than_is_wanted() -> None:
    wanted = Subject(common_name="n", organizations=("o",), dns_names=("a",), ip_addresses=("10.0.0.1",))
    more = Subject(common_name="n", organizations=("o", "p"), dns_names=("a", "b"), ip_addresses=("10.0.0.1",))
    assert satisfies(certificate(more), wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        Subject(common_name="m"),
        Subject(common_name="n", organizations=("o",)),
        Subject(common_name="n", dns_names=("a",)),
        Subject(common_name="n", ip_addresses=("10.0.0.1",)),
    ],
)
def test_certificate_that_lacks_something_is_not_enough(wanted: Subject) -> None:
    assert not satisfies(certificate(Subject(common_name="n")), wanted)
