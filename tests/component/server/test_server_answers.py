"""What the HTTPS port answers: bodies, statuses and headers of the Go kubelet (http.md), over plain connections."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod
from glasslet.server.handlers import system_logs
from glasslet.server.routes import RouteSwitches
from tests.component.server_fixture import serving
from tests.fakes.server_sources import FakeNode, FakePods, pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def test_healthz_says_ok() -> None:
    async with serving() as running:
        answer = await (await running.client()).ask("GET", "/healthz")
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_healthz_names_the_failing_check_and_withholds_the_reason() -> None:
    # http.md: "500 with one line per check and "healthz check failed""
    async with serving(FakeNode(sick="stuck on a secret thing")) as running:
        answer = await (await running.client()).ask("GET", "/healthz")
    assert answer.status == 500
    assert answer.text == "[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n"


async def test_healthz_check_can_be_excluded() -> None:
    async with serving(FakeNode(sick="x")) as running:
        answer = await (await running.client()).ask("GET", "/healthz?verbose&exclude=syncloop&exclude=nope")
    assert answer.status == 200
    assert answer.text == (
        '[+]ping ok\n[+]syncloop excluded: ok\nwarn: some health checks cannot be excluded: no matches for "nope"\n'
        "healthz check passed\n"
    )


async def test_one_check_gives_its_error() -> None:
    async with serving(FakeNode(sick="sync Loop took longer than expected")) as running:
        answer = await (await running.client()).ask("GET", "/healthz/syncloop")
    assert (answer.status, answer.text) == (500, "internal server error: sync Loop took longer than expected\n")


async def test_pods_is_a_pod_list_whose_items_have_no_kind() -> None:
    async with serving() as running:
        client = await running.client()
        answer = await client.ask("GET", "/pods")
        again = await client.ask("GET", "/pods/")
    found = json.loads(answer.body)
    assert answer.headers["content-type"] == "application/json"
    assert (found["kind"], found["apiVersion"], found["metadata"]) == ("PodList", "v1", {})
    assert [item["metadata"]["name"] for item in found["items"]] == ["web"]
    assert "kind" not in found["items"][0]
    assert again.body == answer.body


async def test_pods_items_are_null_when_there_are_none() -> None:
    # http.md: "items is null when there are none"
    async with serving(FakeNode(pods=FakePods(desired=[]))) as running:
        answer = await (await running.client()).ask("GET", "/pods")
    assert answer.body == b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}\n'


async def test_runningpods_shows_what_the_runtime_runs() -> None:
    container = ObservedContainer(
        id=ContainerID("c1"),
        name="main",
        attempt=0,
        phase=ContainerPhase.RUNNING,
        sandbox_id=SandboxID("s1"),
        created_at=NOW,
        image="sha256:1",
    )
    observed = ObservedPod(uid=PodUID("uid-1"), name="web", namespace="default", containers=(container,))
    async with serving(FakeNode(pods=FakePods(running=[observed]))) as running:
        client = await running.client()
        answer = await client.ask("GET", "/runningpods/")
        moved = await client.ask("GET", "/runningpods?x=1")
    assert json.loads(answer.body)["items"] == [
        {
            "metadata": {"name": "web", "namespace": "default", "uid": "uid-1"},
            "spec": {"containers": [{"name": "main", "image": "sha256:1"}]},
        }
    ]
    assert (moved.status, moved.headers["location"]) == (301, "/runningpods/?x=1")


async def test_configz_is_the_configuration_in_effect() -> None:
    async with serving() as running:
        answer = await (await running.client()).ask("GET", "/configz")
    assert json.loads(answer.body) == {"kubeletconfig": {"maxPods": 110}}


async def test_metrics_are_text_with_the_start_time() -> None:
    async with serving() as running:
        client = await running.client()
        await client.ask("GET", "/pods")
        answer = await client.ask("GET", "/metrics")
        packed = await client.ask("GET", "/metrics", {"Accept-Encoding": "gzip"})
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    assert answer.headers["process-start-time-unix"].isdigit()
    counted = 'kubelet_http_requests_total{method="GET",path="pods",server_type="readwrite",long_running="false"} 1'
    assert counted in answer.text
    assert packed.headers["content-encoding"] == "gzip"
    assert counted in gzip.decompress(packed.body).decode()


async def test_slis_are_reset_by_delete() -> None:
    async with serving() as running:
        client = await running.client()
        await client.ask("GET", "/healthz")
        before = await client.ask("GET", "/metrics/slis")
        reset = await client.ask("DELETE", "/metrics/slis")
        after = await client.ask("GET", "/metrics/slis")
    assert 'kubernetes_healthcheck{name="ping",type="healthz"} 1' in before.text
    assert reset.body == b"metrics reset\n"
    assert "kubernetes_healthcheck" not in after.text


async def test_unknown_path_is_not_found_in_gos_words() -> None:
    async with serving() as running:
        answer = await (await running.client()).ask("GET", "/nothing")
    assert (answer.status, answer.text) == (404, "404 page not found\n")


async def test_path_under_a_served_prefix_without_a_route_is_not_found_in_the_routers_words() -> None:
    async with serving() as running:
        answer = await (await running.client()).ask("POST", "/run")
    assert (answer.status, answer.text) == (404, "404: Page Not Found")


async def test_wrong_method_is_refused_with_the_right_ones() -> None:
    async with serving() as running:
        client = await running.client()
        posted = await client.ask("POST", "/pods")
        head = await client.ask("HEAD", "/pods")
    assert (posted.status, posted.text, posted.headers["allow"]) == (405, "405: Method Not Allowed", "GET")
    assert head.status == 405


async def test_fixed_paths_take_any_method() -> None:
    async with serving() as running:
        client = await running.client()
        statuses = [(await client.ask(method, "/healthz")).status for method in ("POST", "DELETE", "HEAD")]
    assert statuses == [200, 200, 200]


async def test_answer_that_is_not_accepted_is_refused() -> None:
    async with serving() as running:
        client = await running.client()
        pods = await client.ask("GET", "/pods", {"Accept": "text/html"})
        logs = await client.ask("GET", "/containerLogs/default/web/main", {"Accept": "application/json"})
    assert (pods.status, pods.text) == (406, "406: Not Acceptable")
    assert logs.status == 406


async def test_no_answer_names_the_server_software() -> None:
    async with serving() as running:
        answer = await (await running.client()).ask("GET", "/healthz")
    assert "server" not in answer.headers


async def test_debugging_handlers_off_answers_405_and_hides_configz() -> None:
    # http.md: "answer 405 with the text `Debug endpoints are disabled.`; /configz ... are absent (404)"
    async with serving(switches=RouteSwitches(enable_debugging_handlers=False)) as running:
        client = await running.client()
        for path in ("/run/a", "/exec/a/b/c", "/containerLogs/default/web/main", "/runningpods/", "/logs/"):
            answer = await client.ask("GET", path)
            assert (answer.status, answer.text) == (405, "Debug endpoints are disabled.\n"), path
        assert (await client.ask("GET", "/configz")).status == 404
        assert (await client.ask("GET", "/pods")).status == 200


async def test_read_only_port_serves_its_rows_only() -> None:
    async with serving(read_only=True) as running:
        client = await running.client()
        served = [
            (await client.ask("GET", path)).status for path in ("/healthz", "/pods", "/metrics", "/metrics/probes")
        ]
        others = ("/containerLogs/default/web/main", "/configz", "/runningpods/", "/logs/", "/exec/a/b/c")
        refused = {(await client.ask("GET", path)).status for path in others}
    assert served == [200, 200, 200, 200]
    assert refused == {404}


async def test_system_logs_list_folders_and_serve_ranges(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "a <b>.log").write_text("0123456789")
    async with serving(switches=RouteSwitches(system_logs=str(tmp_path))) as running:
        client = await running.client()
        listing = await client.ask("GET", "/logs/")
        part = await client.ask("GET", "/logs/a%20%3Cb%3E.log", {"Range": "bytes=2-4"})
        folder = await client.ask("GET", "/logs/pods")
        missing = await client.ask("GET", "/logs/nope")
    assert '<a href="a%20%3Cb%3E.log">a &lt;b&gt;.log</a>\n<a href="pods/">pods/</a>' in listing.text
    assert (part.status, part.body) == (206, b"234")
    assert (folder.status, folder.headers["location"]) == (301, "pods/")
    assert (missing.status, missing.text) == (404, "404 page not found\n")


async def test_system_logs_are_looked_up_off_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up_in: set[int] = set()
    stat, scandir = os.stat, os.scandir

    def noted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(path: Any, *args: Any, **options: Any) -> Any:
            if str(path).startswith(str(tmp_path)):
                looked_up_in.add(threading.get_ident())
            return call(path, *args, **options)

        return wrapper

    monkeypatch.setattr(os, "stat", noted(stat))
    monkeypatch.setattr(os, "scandir", noted(scandir))
    (tmp_path / "a.log").write_text("0123456789")
    async with serving(switches=RouteSwitches(system_logs=str(tmp_path))) as running:
        client = await running.client()
        assert (await client.ask("GET", "/logs/")).status == 200
        assert (await client.ask("GET", "/logs/a.log")).status == 200
    assert looked_up_in
    assert threading.get_ident() not in looked_up_in


async def test_folder_of_system_logs_that_hangs_holds_up_no_other_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_logs, "SECONDS", 0.2)
    go_on = threading.Event()

    def hang(folder: str) -> bytes:
        go_on.wait(20)
        return b""

    monkeypatch.setattr(system_logs, "listing", hang)
    async with serving(switches=RouteSwitches(system_logs=str(tmp_path))) as running:
        for _ in range(system_logs.READERS + 2):
            answer = await (await running.client()).ask("GET", "/logs/")
            assert (answer.status, answer.text) == (503, "the log folder did not answer within 0.2 s\n")
            assert (await (await running.client()).ask("GET", "/pods")).status == 200
        go_on.set()


async def test_system_logs_cannot_be_left(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    async with serving(switches=RouteSwitches(system_logs=str(folder))) as running:
        for path in ("/logs/../secret", "/logs/%2e%2e/secret", "/logs/..%2fsecret", "/logs//../secret"):
            answer = await (await running.client()).ask("GET", path)
            assert answer.status == 301, path
            assert b"secret</" not in answer.body
            assert not answer.headers["location"].startswith(("//", "/logs"))
        null = await (await running.client()).ask("GET", "/logs/a%00b")
    assert null.status == 404


async def test_system_logs_can_be_switched_off() -> None:
    async with serving(switches=RouteSwitches(enable_system_log_handler=False)) as running:
        answer = await (await running.client()).ask("GET", "/logs/")
    assert (answer.status, answer.text) == (405, "logs endpoint is disabled.\n")


async def test_verbosity_is_set_by_put() -> None:
    async with serving() as running:
        client = await running.client()
        put = await client.ask("PUT", "/debug/flags/v", body=b"4")
        bad = await client.ask("PUT", "/debug/flags/v", body=b"many")
        large = await client.ask("PUT", "/debug/flags/v", body=b"11")
        got = await client.ask("GET", "/debug/flags/v")
    assert put.status == 200
    assert running.node.verbosity == 4
    assert (bad.status, large.status) == (400, 400)
    assert (got.status, got.text) == (406, "unsupported http method\n")


async def test_goroutine_profile_names_the_agents_tasks() -> None:
    async with serving() as running:
        client = await running.client()
        tasks = await client.ask("GET", "/debug/pprof/goroutine?debug=2")
        bare = await client.ask("GET", "/debug/pprof/")
        block = await client.ask("GET", "/debug/pprof/block")
    assert "Stack for task " in tasks.text
    assert "Stack for thread MainThread" in tasks.text
    assert (bare.status, block.status) == (404, 404)


async def test_a_length_of_a_profile_that_is_none_is_refused() -> None:
    async with serving() as running:
        client = await running.client()
        for text in ("-1", "many", "nan", "301"):
            answer = await client.ask("GET", f"/debug/pprof/profile?seconds={text}")
            assert (answer.status, answer.text) == (400, "seconds: want a number from 0 to 300\n")


async def test_one_profile_of_a_length_at_a_time() -> None:
    async with serving() as running:
        first, second = await running.client(), await running.client()
        long = asyncio.create_task(first.ask("GET", "/debug/pprof/profile?seconds=0.5"))
        await asyncio.sleep(0.1)
        refused = await second.ask("GET", "/debug/pprof/trace?seconds=0.1")
        assert (await long).status == 200
        again = await second.ask("GET", "/debug/pprof/trace?seconds=0.1")
    assert refused.status == 500
    assert "another profile" in refused.text
    assert again.status == 200


async def test_a_handler_that_fails_is_a_500_and_the_next_request_works() -> None:
    node = FakeNode()
    node.configuration = None  # type: ignore[assignment]
    node.pods = FakePods(desired=[pod(), None])  # type: ignore[list-item]
    async with serving(node) as running:
        client = await running.client()
        failed = await client.ask("GET", "/pods")
        fine = await client.ask("GET", "/healthz")
    assert failed.status == 500
    assert "NoneType" not in failed.text
    assert fine.status == 200
