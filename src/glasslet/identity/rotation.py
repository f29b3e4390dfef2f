"""When a certificate has to be replaced. Pure; times in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from ipaddress import ip_address

from glasslet.api.node import NodeAddress
from glasslet.identity.certificate import Certificate, Subject

_EARLIEST, _SPREAD = 0.7, 0.2

ORGANIZATION = "system:nodes"


def node_subject(node: str) -> Subject:
    """The name of a node in all its certificates."""
    return Subject(common_name=f"system:node:{node}", organizations=(ORGANIZATION,))


def serving_subject(node: str, addresses: Iterable[NodeAddress], *, names_alone: bool = False) -> Subject | None:
    """The node with its names and addresses as it reports them; None while there is no name or address to certify.

    An IP address is needed, unless `names_alone` (gate AllowDNSOnlyNodeCSR) is content with a DNS name."""
    names: set[str] = set()
    found: set[str] = set()
    for one in addresses:
        address = _canonical(one.address)
        if address and one.type in ("Hostname", "InternalIP", "ExternalIP"):
            found.add(address)
        elif one.address and one.type in ("Hostname", "InternalDNS", "ExternalDNS"):
            names.add(one.address)
    if not found and not (names_alone and names):
        return None
    plain = node_subject(node)
    return Subject(
        common_name=plain.common_name,
        organizations=plain.organizations,
        dns_names=tuple(sorted(names)),
        ip_addresses=tuple(sorted(found)),
    )


def satisfies(certificate: Certificate, wanted: Subject) -> bool:
    """True if a certificate has all that is wanted; it may have more."""
    has = certificate.subject
    return (
        has.common_name == wanted.common_name
        and set(has.organizations) >= set(wanted.organizations)
        and set(has.dns_names) >= set(wanted.dns_names)
        and set(has.ip_addresses) >= set(wanted.ip_addresses)
    )


def renewal_moment(certificate: Certificate, share: float) -> datetime:
    """Between 70 and 90 % of its life, counted from its beginning. `share` in [0, 1) picks the moment: drawn at random
    for each certificate, so that nodes that joined together do not renew together each time."""
    life = certificate.not_after - certificate.not_before
    return certificate.not_before + life * (_EARLIEST + _SPREAD * share)


def _canonical(address: str) -> str:
    try:
        return str(ip_address(address))
    except ValueError:
        return ""
