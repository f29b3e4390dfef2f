"""Every path of the reference, asked as it says and as it says one must not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from glasslet.server.protocols import HealthCheck
from glasslet.server.routes import RouteSwitches
from tests.component.server.test_server_stats import MeasuringNode
from tests.component.server_fixture import serving
from tests.fakes.http_client import Answer

Row = dict[str, Any]
ROWS: list[Row] = [
    row
    for row in json.loads(Path("tests/data/http.json").read_text())["rows"]
    if row["server"] == "10250" and not any(gate in row["gate"] for gate in ("ComponentStatusz", "ComponentFlagz"))
]
OFF_BY_DEFAULT = ("/statusz", "/flagz")
STREAMS = ("/exec/", "/attach/", "/portForward/")
QUERIES = {"/exec/": "?command=ls&output=1", "/attach/": "?output=1", "/run/": "?cmd=ls"}
BODIES = {"/debug/flags/v": b"3"}
FILLED = {
    "{namespace}": "default",
    "{pod}": "web",
    "{uid}": "uid-1",
    "{container}": "main",
    "{subpath}": "cmdline",
    "{path}": "some.log",
}
TEXTS = {
    "Prometheus text": "text/plain",
    "binary or text": "text/plain",
    "by file type": "text/plain; charset=utf-8",
    "raw bytes labelled application/json": "application/json",
    "application/json, indented": "application/json",
}
FORMATS: dict[str, str] = {}
_format = ""
for _row in ROWS:
    # "same": as in the row before.
    _format = _format if _row["format"] == "same" else _row["format"]
    FORMATS.setdefault(_row["path"], _format)
DISABLED = (
    "/run/",
    "/exec/",
    "/attach/",
    "/portForward/",
    "/containerLogs/",
    "/runningpods/",
    "/debug/pprof/",
    "/logs/",
)
"""http.md: "enableDebuggingHandlers=false: [these] answer 405 with the text `Debug endpoints are disabled.`"."""


def each(rows: list[Row]) -> pytest.MarkDecorator:
    unique = {row["path"]: row for row in rows}
    return pytest.mark.parametrize("row", unique.values(), ids=unique.keys())


def target(row: Row) -> str:
    path = str(row["path"])
    query = next((query for prefix, query in QUERIES.items() if path.startswith(prefix)), "")
    for placeholder, value in FILLED.items():
        path = path.replace(placeholder, value)
    return path + query


async def ask(
    row: Row, logs: Path, method: str = "", headers: dict[str, str] | None = None, **switches: bool
) -> Answer:
    (logs / "some.log").write_text("words\n")
    node = MeasuringNode(extra_checks=(HealthCheck("log", lambda: None), HealthCheck("device-plugin", lambda: None)))
    async with serving(node, switches=RouteSwitches(system_logs=str(logs), **switches)) as running:
        client = await running.client()
        method = method or row["methods"][0]
        return await client.ask(method, target(row), headers, BODIES.get(row["path"], b""))


@each(ROWS)
async def test_an_endpoint_answers_in_its_form(row: Row, tmp_path: Path) -> None:
    answer = await ask(row, tmp_path)
    kind = answer.headers.get("content-type", "")
    if row["path"].startswith(STREAMS):
        # http.md: "500 [...] or a request without upgrade"
        assert (answer.status, answer.text) == (500, "Upgrade request required\n")
    elif "no Content-Type" in FORMATS[row["path"]]:
        assert (answer.status, kind) == (200, "")
    else:
        assert answer.status == 200
        assert kind.startswith(TEXTS.get(FORMATS[row["path"]], FORMATS[row["path"]]))


@each([row for row in ROWS if "any" not in row["methods"] and row["path"] != "/debug/flags/v"])
async def test_a_wrong_method_is_405_and_names_the_right_ones(row: Row, tmp_path: Path) -> None:
    # http.md: "Other rows answer a wrong method with 405 `405: Method Not Allowed` and an Allow header"
    answer = await ask(row, tmp_path, "PATCH")
    assert (answer.status, answer.text) == (405, "405: Method Not Allowed")
    assert answer.headers["allow"].split(", ") == row["methods"]


async def test_log_verbosity_has_words_of_its_own_for_a_wrong_method(tmp_path: Path) -> None:
    # http.md: 'other methods 406 "unsupported http method"'
    row = next(row for row in ROWS if row["path"] == "/debug/flags/v")
    answer = await ask(row, tmp_path, "POST")
    assert (answer.status, answer.text) == (406, "unsupported http method\n")


@each([row for row in ROWS if "any" in row["methods"]])
async def test_where_any_method_will_do_it_does(row: Row, tmp_path: Path) -> None:
    assert (await ask(row, tmp_path, "PATCH")).status == 200


@each([row for row in ROWS if "any" not in row["methods"] and not row["path"].startswith("/debug/flags")])
async def test_an_accept_header_that_allows_nothing_of_ours_is_406(row: Row, tmp_path: Path) -> None:
    # http.md: "/pods, [...] answer 406 `406: Not Acceptable` to an Accept header without application/json or */*"
    answer = await ask(row, tmp_path, headers={"Accept": "image/png"})
    assert (answer.status, answer.text) == (406, "406: Not Acceptable")


@each([row for row in ROWS if not row["also_on_readonly"]])
async def test_without_debugging_handlers_an_endpoint_says_so_or_is_not_there(row: Row, tmp_path: Path) -> None:
    answer = await ask(row, tmp_path, enable_debugging_handlers=False)
    if row["path"].startswith(DISABLED):
        assert (answer.status, answer.text) == (405, "Debug endpoints are disabled.\n")
    else:
        # http.md: "/configz, /checkpoint, /statusz, /flagz, /debug/flags/v are absent (404)"
        assert (answer.status, answer.text) == (404, "404 page not found\n")


@pytest.mark.parametrize(
    ("switch", "path", "text"),
    [
        ("enable_profiling_handler", "/debug/pprof/{subpath}", "profiling endpoint is disabled.\n"),
        ("enable_debug_flags_handler", "/debug/flags/v", "flags endpoint is disabled.\n"),
        ("enable_system_log_handler", "/logs/{path}", "logs endpoint is disabled.\n"),
    ],
)
async def test_an_endpoint_that_is_switched_off_says_so(switch: str, path: str, text: str, tmp_path: Path) -> None:
    row = next(row for row in ROWS if row["path"] == path)
    off: dict[str, Any] = {switch: False}
    answer = await ask(row, tmp_path, **off)
    assert (answer.status, answer.text) == (405, text)


@pytest.mark.parametrize("path", OFF_BY_DEFAULT)
async def test_endpoints_of_gates_that_are_off_are_not_there(path: str, tmp_path: Path) -> None:
    assert (await ask({"path": path, "methods": ["GET"]}, tmp_path)).status == 404


@pytest.mark.parametrize(("path", "moved"), [("/runningpods", "/runningpods/"), ("/logs", "/logs/")])
async def test_a_missing_slash_is_a_redirect(path: str, moved: str, tmp_path: Path) -> None:
    answer = await ask({"path": path, "methods": ["GET"]}, tmp_path)
    assert (answer.status, answer.headers["location"]) == (301, moved)


async def test_the_bare_profiling_path_is_not_found(tmp_path: Path) -> None:
    # http.md: "the bare /debug/pprof/ answers 404 (a subpath is required)"
    assert (await ask({"path": "/debug/pprof/", "methods": ["GET"]}, tmp_path)).status == 404
