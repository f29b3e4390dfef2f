"""Paths to routes, and the table against the list of the Go kubelet's endpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp import web

from glasslet.server.routes import RouteSwitches, https_routes, read_only_routes
from glasslet.server.routing import (
    Choice,
    Parameters,
    Produces,
    Redirect,
    Refusal,
    Route,
    RouteGroup,
    RouteTable,
    accepts,
    clean,
)
from tests.fakes.server_sources import FakeNode

ENDPOINTS = json.loads(Path("tests/data/http.json").read_text())["rows"]
LATER = {"/stats/summary", "/metrics/cadvisor", "/metrics/resource"}
"""Need figures of containers; the fake node has none."""


async def nothing(_request: web.Request, _parameters: Parameters) -> web.StreamResponse:
    return web.Response()


@pytest.fixture
def table() -> RouteTable:
    routes = RouteTable()
    routes.fixed("/metrics", nothing)
    routes.everything_below("/off/", nothing)
    routes.service("/pods", Route(("GET",), "/pods", nothing, Produces.JSON))
    routes.service("/running/", Route(("GET",), "/running/", nothing))
    routes.service(
        "/exec",
        Route(("GET", "POST"), "/exec/{namespace}/{pod}/{container}", nothing),
        Route(("GET", "POST"), "/exec/{namespace}/{pod}/{uid}/{container}", nothing),
    )
    routes.service("/logs/", Route(("GET",), "/logs/", nothing), Route(("GET",), "/logs/{path:*}", nothing))
    return routes


def choose(table: RouteTable, path: str, method: str = "GET", accept: str | None = None) -> Choice | Refusal:
    service = table.find(path)
    assert isinstance(service, RouteGroup)
    return service.choose(path, method, accept)


@pytest.mark.parametrize("path", ["/", "/nothing", "/metricsx", "/metrics/", "/metrics/x", "/podsx", "/exe", "/offx"])
def test_paths_outside_the_served_ones_are_unknown(table: RouteTable, path: str) -> None:
    assert table.find(path) is None


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("//pods", "/pods"),
        ("/a/../pods", "/pods"),
        ("/./pods/", "/pods/"),
        ("/running", "/running/"),
        ("/off", "/off/"),
    ],
)
def test_untidy_paths_are_redirected(table: RouteTable, path: str, location: str) -> None:
    assert table.find(path) == Redirect(location)


@pytest.mark.parametrize("path", ["/", "//", "/..", "/../..", "//evil.example/..", "/a//b/"])
def test_cleaned_path_never_begins_with_two_slashes_or_leaves_the_root(path: str) -> None:
    cleaned = clean(path)
    assert cleaned.startswith("/")
    assert not cleaned.startswith("//")
    assert ".." not in cleaned.split("/")


def test_placeholders_take_one_segment_each(table: RouteTable) -> None:
    short, long = choose(table, "/exec/ns/web/main"), choose(table, "/exec/ns/web/uid-1/main", "POST")
    assert isinstance(short, Choice)
    assert isinstance(long, Choice)
    assert short.parameters == {"namespace": "ns", "pod": "web", "container": "main"}
    assert long.parameters["uid"] == "uid-1"


def test_rest_placeholder_takes_all_that_follows(table: RouteTable) -> None:
    chosen = choose(table, "/logs/pods/x/0.log")
    assert isinstance(chosen, Choice)
    assert chosen.parameters == {"path": "pods/x/0.log"}


def test_one_trailing_slash_is_accepted_on_routes(table: RouteTable) -> None:
    assert isinstance(choose(table, "/pods/"), Choice)


def test_refusals_are_in_order_path_method_accept(table: RouteTable) -> None:
    assert choose(table, "/exec/ns") == Refusal(404, "404: Page Not Found", {})
    assert choose(table, "/exec/ns/web/main", "PUT") == Refusal(405, "405: Method Not Allowed", {"Allow": "GET, POST"})
    assert choose(table, "/pods", "GET", "text/html") == Refusal(406, "406: Not Acceptable", {})


@pytest.mark.parametrize(
    ("header", "produces", "expected"),
    [
        (None, Produces.ANYTHING, True),
        ("*/*", Produces.JSON, True),
        ("text/html, application/json;q=0.9", Produces.JSON, True),
        ("application/json", Produces.ANYTHING, False),
        ("text/*", Produces.JSON, False),
    ],
)
def test_accept_header(header: str | None, produces: Produces, expected: bool) -> None:
    assert accepts(header, produces) is expected


def served(path: str) -> str:
    """A reference path in the words of our table."""
    return path.replace("{subpath}", "{profile:*}").replace("/logs/{path}", "/logs/{path:*}")


def test_every_endpoint_of_the_https_port_is_served_or_named_as_later() -> None:
    table = set(https_routes(FakeNode().sources(), RouteSwitches()).paths())
    gated = {row["path"] for row in ENDPOINTS if row["gate"].startswith("Component")}
    wanted = {served(row["path"]) for row in ENDPOINTS if row["server"] == "10250"} - LATER - gated
    wanted -= {
        "/healthz/log",
        "/healthz/device-plugin",
    }  # checks are given by the agent; the fake node has none of them
    assert wanted <= table
    assert table - wanted == set()


def test_read_only_port_serves_exactly_the_rows_marked_so() -> None:
    table = set(read_only_routes(FakeNode().sources()).paths())
    marked = {row["path"] for row in ENDPOINTS if row["server"] == "10250" and row["also_on_readonly"]}
    assert table == marked - LATER - {"/healthz/log", "/healthz/device-plugin"}
