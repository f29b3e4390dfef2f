"""Subresources of a path, bearer tokens, and the chain of authenticators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from glasslet.concurrency.clock import SystemClock
from glasslet.server.access.authentication import AuthenticationChain, BadCredentials, bearer_token
from glasslet.server.access.authorization import subresources
from glasslet.server.access.policy import AccessSettings, BadAccessSetting, build_access
from glasslet.server.access.users import ANONYMOUS, Attributes, RequestCredentials, User

ROWS = [row for row in json.loads(Path("tests/data/http.json").read_text())["rows"] if row["server"] == "10250"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["path"])
def test_every_endpoint_needs_the_subresources_of_the_reference(row: dict[str, dict[str, list[str]]]) -> None:
    path = str(row["path"]).replace("{", "").replace("}", "")
    assert list(subresources(path)) == row["authz"]["subresources"]


@pytest.mark.parametrize("path", ["/pods", "/healthz", "/configz", "/runningpods/", "/healthz/ping"])
def test_without_the_gate_only_proxy_is_asked(path: str) -> None:
    # http.md: "Gate off: only `proxy`."
    assert subresources(path, fine_grained=False) == ("proxy",)


@pytest.mark.parametrize("path", ["/stats/summary", "/metrics", "/logs/x", "/checkpoint/a/b/c", "/glass/v1/pods"])
def test_own_subresources_never_fall_back_to_proxy(path: str) -> None:
    assert len(subresources(path)) == 1
    assert subresources(path) == subresources(path, fine_grained=False)


@pytest.mark.parametrize(("path", "expected"), [("/metrics/x", "metrics"), ("/metricsx", "proxy"), ("/podsx", "proxy")])
def test_matching_is_by_whole_segments(path: str, expected: str) -> None:
    assert subresources(path) == (expected,)


@pytest.mark.parametrize(
    ("header", "expected"),
    [("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("Basic abc", None), ("Bearer ", None), (None, None)],
)
def test_bearer_token_of_the_header(header: str | None, expected: str | None) -> None:
    assert bearer_token(header, ()) == expected


@pytest.mark.parametrize("encoded", ["!!!", "_w"])
def test_undecodable_subprotocol_token_is_none(encoded: str) -> None:
    assert bearer_token(None, [f"base64url.bearer.authorization.k8s.io.{encoded}"]) is None


def test_tokens_never_show_in_a_repr() -> None:
    assert "secret" not in repr(RequestCredentials(token="secret"))


class Says:
    """An authenticator with a fixed answer."""

    def __init__(self, answer: User | BadCredentials | None) -> None:
        self._answer = answer

    async def authenticate(self, credentials: RequestCredentials) -> User | None:
        if isinstance(self._answer, BadCredentials):
            raise self._answer
        return self._answer


ALICE = User("alice")


async def ask(*answers: User | BadCredentials | None, anonymous: bool = False) -> User | None:
    return await AuthenticationChain(ways=[Says(a) for a in answers], anonymous=anonymous).authenticate(
        RequestCredentials()
    )


async def test_refused_way_does_not_stop_the_next() -> None:
    # http.md: "a refused certificate or token is 401 unless the other kind succeeds"
    user = await ask(BadCredentials("bad certificate"), ALICE)
    assert user is not None
    assert user.name == "alice"


async def test_refusal_beats_anonymous() -> None:
    with pytest.raises(BadCredentials):
        await ask(BadCredentials("bad token"), None, anonymous=True)


async def test_nobody_is_anonymous_only_when_allowed() -> None:
    assert await ask(None, anonymous=True) == ANONYMOUS
    assert await ask(None) is None


def settings(**changes: Any) -> AccessSettings:
    values: dict[str, Any] = {"node_name": "node-1", "mode": "AlwaysAllow", "client_certificates": False}
    values |= {"webhook_tokens": False, "anonymous": False}
    return AccessSettings(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"webhook_tokens": True}, "no client provided, cannot use webhook authentication"),
        ({"mode": "Webhook"}, "no client provided, cannot use webhook authorization"),
        ({"mode": "Sometimes"}, "unknown authorization mode Sometimes: allowed are AlwaysAllow, Webhook"),
    ],
)
def test_judge_that_is_not_there_is_an_error_at_start(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BadAccessSetting, match=message):
        build_access(settings(**changes), clock=SystemClock())


async def test_webhook_mode_asks_the_given_judge() -> None:
    class Never:
        async def allows(self, attributes: Attributes) -> bool:
            return False

    access = build_access(settings(mode="Webhook"), clock=SystemClock(), authorizer=Never())
    assert await access.authorization.check(ALICE, "GET", "/pods") is not None


async def test_nothing_configured_lets_nobody_in() -> None:
    assert await build_access(settings(), clock=SystemClock()).authentication.authenticate(RequestCredentials()) is None
