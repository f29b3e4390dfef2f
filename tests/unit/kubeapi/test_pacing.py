"""Pauses before a request is tried again."""

from __future__ import annotations

import pytest

from glasslet.kubeapi.errors import APIError, Forbidden, Throttled, Unavailable
from glasslet.kubeapi.pacing import WHILE_AWAY, pause_after


def test_a_server_that_is_away_is_asked_again_soon_however_long_it_was_away() -> None:
    pause = pause_after(Unavailable("GET /x", "connection refused"), 30.0)
    assert WHILE_AWAY <= pause <= 1.5 * WHILE_AWAY < 10


@pytest.mark.parametrize(
    "error", [Forbidden("GET /x", "no", code=403), Unavailable("GET /x", "etcd is away", code=500)]
)
def test_a_server_that_answers_is_spared(error: APIError) -> None:
    assert 30 <= pause_after(error, 30.0) <= 45


def test_a_server_that_says_how_long_is_not_asked_earlier() -> None:
    assert pause_after(Throttled("GET /x", "slow down", retry_after=20.0), 1.0) >= 20
