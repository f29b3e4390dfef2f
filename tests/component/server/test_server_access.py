"""Who may ask for what (http.md): every path of the table, and never data without being known and allowed."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

import pytest

from glasslet.server.access.authentication import PROTOCOL_PREFIX, TokenAuthenticator
from glasslet.server.access.authorization import AuthorizationError
from glasslet.server.access.users import Attributes, User
from glasslet.server.routes import RouteSwitches, https_routes, read_only_routes
from tests.component.server_fixture import access, serving
from tests.fakes.server_sources import FakeNode


@dataclass
class Tokens:
    """Knows one token."""

    asked: list[str] = field(default_factory=list)

    async def review(self, token: str, source: str) -> User | None:
        self.asked.append(token)
        if token == "broken":
            raise OSError("no API server")
        return User("alice", ("team",)) if token == "good" else None


@dataclass
class Rules:
    """Allows some subresources; keeps what was asked."""

    allowed: tuple[str, ...] = ()
    fails: bool = False
    asked: list[Attributes] = field(default_factory=list)

    async def allows(self, attributes: Attributes) -> bool:
        self.asked.append(attributes)
        if self.fails:
            raise AuthorizationError("no API server")
        return attributes.subresource in self.allowed


CLOSED = ((404, b"404 page not found\n"), (405, b"Debug endpoints are disabled.\n"))
GOOD = {"Authorization": "Bearer good"}


def concrete(pattern: str) -> str:
    """A path for a pattern of the table."""
    for name, value in (("namespace", "default"), ("pod", "web"), ("container", "main"), ("uid", "uid-1")):
        pattern = pattern.replace("{" + name + "}", value)
    return pattern.replace("{path:*}", "syslog").replace("{profile:*}", "cmdline")


EVERY_PATH = [concrete(path) for path in https_routes(FakeNode().sources(), RouteSwitches()).paths()]


@pytest.mark.parametrize("path", EVERY_PATH)
async def test_nobody_gets_anything_without_credentials(path: str) -> None:
    async with serving(who=access(TokenAuthenticator(Tokens()))) as running:
        for method in ("GET", "POST", "PUT", "DELETE", "HEAD"):
            answer = await (await running.client()).ask(method, path)
            assert answer.status == 401, (method, path)
            assert answer.body in (b"Unauthorized", b"")


@pytest.mark.parametrize("path", EVERY_PATH)
async def test_somebody_without_permission_gets_nothing(path: str) -> None:
    async with serving(who=access(TokenAuthenticator(Tokens()), authorizer=Rules())) as running:
        answer = await (await running.client()).ask("GET", path, GOOD)
    assert answer.status == 403
    assert answer.text.startswith("Forbidden (user=alice, verb=get, resource=nodes, subresource(s)=[")


DEBUGGING_PATHS = sorted(set(EVERY_PATH) - {concrete(path) for path in read_only_routes(FakeNode().sources()).paths()})


@pytest.mark.parametrize("path", DEBUGGING_PATHS)
async def test_every_path_that_the_read_only_port_lacks_is_closed_without_debugging_handlers(path: str) -> None:
    assert len(DEBUGGING_PATHS) > 15
    async with serving(switches=RouteSwitches(enable_debugging_handlers=False)) as running:
        for method in ("GET", "POST", "PUT", "DELETE"):
            answer = await (await running.client()).ask(method, path)
            assert (answer.status, answer.body) in CLOSED, (method, path)
    assert (running.node.streams.asked, running.node.logs.asked) == ([], [])


async def test_unknown_path_needs_no_credentials_to_be_unknown() -> None:
    # http.md: "A path outside the served prefixes is answered 404 ... before any authentication"
    async with serving(who=access()) as running:
        client = await running.client()
        assert (await client.ask("GET", "/nothing")).status == 404
        assert (await client.ask("GET", "/healthzz")).status == 404
        assert (await client.ask("GET", "/logs")).status == 301


async def test_wrong_token_is_401_even_when_anonymous_is_allowed() -> None:
    # http.md: "anonymous (if enabled, and only when the request has no credentials ...)"
    async with serving(who=access(TokenAuthenticator(Tokens()), anonymous=True)) as running:
        assert (await (await running.client()).ask("GET", "/pods")).status == 200
        for token in ("bad", "broken"):
            client = await running.client()
            assert (await client.ask("GET", "/pods", {"Authorization": f"Bearer {token}"})).status == 401


async def test_token_nobody_looks_at_is_no_credential() -> None:
    async with serving(who=access(anonymous=True)) as running:
        assert (await (await running.client()).ask("GET", "/pods", {"Authorization": "Bearer x"})).status == 200


async def test_token_may_come_as_websocket_subprotocol() -> None:
    encoded = base64.urlsafe_b64encode(b"good").decode().rstrip("=")
    headers = {"Sec-WebSocket-Protocol": f"v4.channel.k8s.io, {PROTOCOL_PREFIX}{encoded}"}
    async with serving(who=access(TokenAuthenticator(Tokens()))) as running:
        assert (await (await running.client()).ask("GET", "/pods", headers)).status == 200


async def test_authenticated_users_are_in_the_group_of_the_authenticated() -> None:
    rules = Rules(("pods",))
    async with serving(who=access(TokenAuthenticator(Tokens()), authorizer=rules)) as running:
        await (await running.client()).ask("GET", "/pods", GOOD)
    assert rules.asked[0].user == User("alice", ("team", "system:authenticated"))
    assert (rules.asked[0].verb, rules.asked[0].node_name, rules.asked[0].path) == ("get", "node-1", "/pods")


async def test_subresources_are_tried_left_to_right_until_one_allows() -> None:
    rules = Rules(("proxy",))
    async with serving(who=access(anonymous=True, authorizer=rules)) as running:
        answer = await (await running.client()).ask("GET", "/configz")
    assert answer.status == 200
    assert [asked.subresource for asked in rules.asked] == ["configz", "proxy"]


async def test_refusal_names_all_subresources() -> None:
    async with serving(who=access(anonymous=True, authorizer=Rules())) as running:
        answer = await (await running.client()).ask("GET", "/pods")
    assert (answer.status, answer.text) == (
        403,
        "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[pods proxy])\n",
    )


async def test_failing_authoriser_is_a_500_that_says_what_was_asked() -> None:
    async with serving(who=access(anonymous=True, authorizer=Rules(fails=True))) as running:
        answer = await (await running.client()).ask("POST", "/run/default/web/main?cmd=id")
    assert (answer.status, answer.text) == (
        500,
        "Authorization error (user=system:anonymous, verb=create, resource=nodes, subresource=proxy)",
    )


async def test_wrong_method_is_found_out_only_after_authorisation() -> None:
    async with serving(who=access()) as running:
        assert (await (await running.client()).ask("POST", "/pods")).status == 401


async def test_requests_are_counted_before_authentication() -> None:
    async with serving(who=access()) as running:
        await (await running.client()).ask("GET", "/pods")
        text = running.node.metrics.registry.expose().decode()
    assert (
        'kubelet_http_requests_total{method="GET",path="pods",server_type="readwrite",long_running="false"} 1' in text
    )
