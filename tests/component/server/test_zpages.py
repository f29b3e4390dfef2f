"""/statusz and /flagz."""

from __future__ import annotations

import pytest

from glasslet.config.loading import load
from glasslet.server.handlers.zpages import accepts_text, flag_values, flagz, statusz
from glasslet.server.routes import RouteSwitches, zpages
from tests.component.server_fixture import serving

BOTH = RouteSwitches(statusz=True, flagz=True)


async def test_the_pages_are_served_with_their_gates_only() -> None:
    for switches, status in ((BOTH, 200), (RouteSwitches(), 404)):
        async with serving(switches=switches) as running:
            client = await running.client()
            for path in ("/statusz", "/flagz"):
                answer = await client.ask("GET", path, {"Accept": "*/*"})
                assert answer.status == status, path


@pytest.mark.parametrize("path", ["/statusz", "/flagz"])
async def test_an_accept_header_without_plain_text_is_406(path: str) -> None:
    # http.md: "406 unless Accept has text/plain or */* (also with no Accept header)"
    async with serving(switches=BOTH) as running:
        client = await running.client()
        for accept in ("application/json", ""):
            answer = await client.ask("GET", path, {"Accept": accept})
            assert (answer.status, answer.text) == (406, "media type not acceptable, must be: text/plain\n")


@pytest.mark.parametrize(
    ("accept", "taken"),
    [
        ("text/plain", True),
        ("text/plain; charset=utf-8", True),
        ("text/plain;charset=latin-1", False),
        ("application/json, */*;q=0.1", True),
        ("text/*", False),
        ("", False),
    ],
)
def test_what_an_accept_header_takes(accept: str, taken: bool) -> None:
    assert accepts_text(accept) is taken


def test_statusz_says_since_when_and_which_version_runs() -> None:
    lines = statusz(1_767_225_600.0, 1_767_225_600.0 + 3725).splitlines()
    assert lines[1] == "kubelet statusz"
    assert "Started: Thu Jan  1 00:00:00 UTC 2026" in lines
    assert "Up: 1 hr 02 min 05 sec" in lines
    assert "Emulation version: 1.34" in lines


def test_flagz_has_the_command_line_s_values_and_hides_secrets() -> None:
    given = load(
        [
            "--v=4",
            "--fail-swap-on=false",
            "--node-labels=a=b,c=d",
            "--manifest-url=https://ann:hunter2@example.com/pods",
            "--manifest-url-header=Authorization:Bearer hunter2",
        ]
    ).flags
    lines = flagz(flag_values(given)).splitlines()
    assert {"v=4", "fail-swap-on=false", "node-labels=a=b,c=d", "max-pods=110"} <= set(lines)
    assert {"manifest-url=CLASSIFIED", "manifest-url-header=CLASSIFIED"} <= set(lines)
    assert not any("hunter2" in line for line in lines)
    assert lines[5:] == sorted(lines[5:], key=lambda line: line.partition("=")[0])


def test_requests_for_the_pages_are_counted_under_their_names() -> None:
    assert zpages(BOTH) == {"statusz", "flagz"}
    assert zpages(RouteSwitches(statusz=True, flagz=True, enable_debugging_handlers=False)) == frozenset()
