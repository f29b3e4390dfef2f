"""The credentials that a request brings."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp.test_utils import make_mocked_request

from glasslet.concurrency.clock import SystemClock
from glasslet.server.access.authentication import BadCredentials, CertificateAuthenticator
from glasslet.server.access.users import ClientCertificate, RequestCredentials
from glasslet.server.request_pipeline import credentials_of


@pytest.mark.parametrize(
    ("address", "source"),
    [("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")],
)
def test_all_addresses_of_an_ipv6_subnet_are_one_source(address: str, source: str) -> None:
    guard = SimpleNamespace(certificate=None, source=address)
    assert credentials_of(make_mocked_request("GET", "/pods"), cast("Any", guard)).source == source


@pytest.mark.parametrize("names", [(), (("commonName", ""),)])
async def test_certificate_without_a_common_name_is_no_user(
    names: tuple[tuple[str, str], ...],
) -> None:
    certificate = ClientCertificate(
        names=(("organizationName", "system:masters"), *names),
        not_before=datetime(2020, 1, 1, tzinfo=UTC),
        not_after=datetime(2120, 1, 1, tzinfo=UTC),
    )
    with pytest.raises(BadCredentials, match="no common name"):
        await CertificateAuthenticator(SystemClock()).authenticate(RequestCredentials(certificate=certificate))
