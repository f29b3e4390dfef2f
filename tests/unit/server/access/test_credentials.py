"""The credentials that a request brings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp.test_utils import make_mocked_request

from glasslet.server.request_pipeline import credentials_of


@pytest.mark.parametrize(
    ("address", "source"),
    [("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")],
)
def test_all_addresses_of_an_ipv6_subnet_are_one_source(address: str, source: str) -> None:
    guard = SimpleNamespace(certificate=None, source=address)
    assert credentials_of(make_mocked_request("GET", "/pods"), cast("Any", guard)).source == source
