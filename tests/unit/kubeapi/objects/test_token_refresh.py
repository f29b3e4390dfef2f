"""When a token is renewed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from glasslet.kubeapi.objects.tokens import TokenRequest, TokenRequestSpec, TokenRequestStatus, needs_refresh

BORN = datetime(2026, 1, 1, tzinfo=UTC)


def token(life: int) -> TokenRequest:
    return TokenRequest(
        spec=TokenRequestSpec(expiration_seconds=life),
        status=TokenRequestStatus(token="t0ken", expiration_timestamp=BORN + timedelta(seconds=life)),
    )


# behaviours.md §22: "Tokens: default 3600 s, renewed after 80 % of life (minus up to 10 s) or 24 h"
@pytest.mark.parametrize(
    ("life", "age", "jitter", "due"),
    [
        (3600, 0, 10, False),
        (3600, 2880, 0, False),
        (3600, 2881, 0, True),
        (3600, 2871, 10, True),
        (3600, 2869, 10, False),
        (600, 481, 0, True),
        (600, 479, 0, False),
        (31_536_000, 86_399, 0, False),
        (31_536_000, 86_401, 0, True),
        (31_536_000, 86_391, 10, True),
    ],
)
def test_token_is_renewed_at_four_fifths_of_its_life_or_after_a_day(
    life: int, age: int, jitter: float, due: bool
) -> None:
    assert needs_refresh(token(life), BORN + timedelta(seconds=age), jitter=jitter) is due


def test_token_does_not_show_in_its_repr() -> None:
    assert "t0ken" not in repr(token(3600))
