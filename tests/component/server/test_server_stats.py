"""Statistics over HTTP: paths, methods, parameters, forms of answers."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from glasslet.server.routes import Sources
from glasslet.stats.pages.summary import StatsUnavailable
from tests.component.server_fixture import serving
from tests.fakes.http_client import Answer
from tests.fakes.server_sources import FakeNode

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass
class FakeStats:
    """Statistics. `broken`: what is wrong with the node."""

    broken: str = ""
    asked: list[bool] = field(default_factory=list)

    async def summary_json(self, *, only_cpu_and_memory: bool = False) -> bytes:
        self.asked.append(only_cpu_and_memory)
        self._fail()
        return b'{\n "node": {}\n}'

    async def resource_metrics(self) -> bytes:
        return b"resource_scrape_error 0\n"

    async def cadvisor_metrics(self) -> bytes:
        self._fail()
        return b"container_scrape_error 0\n" * 100

    def _fail(self) -> None:
        if self.broken:
            raise StatsUnavailable(self.broken)


@dataclass
class MeasuringNode(FakeNode):
    """A node that measures."""

    stats: FakeStats = field(default_factory=FakeStats)

    def sources(self) -> Sources:
        return replace(super().sources(), stats=self.stats)


async def ask(
    method: str,
    path: str,
    *,
    node: MeasuringNode | None = None,
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    read_only: bool = False,
) -> Answer:
    async with serving(node or MeasuringNode(), read_only=read_only) as server:
        return await (await server.client()).ask(method, path, headers, body)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("path", ["/stats/summary", "/stats/summary/", "/metrics/resource", "/metrics/cadvisor"])
async def test_both_ports_serve_statistics(path: str, read_only: bool) -> None:
    # http.md: "yes" in column "Read-only port"; "One trailing slash is accepted on routes (/pods/, /stats/summary/)"
    assert (await ask("GET", path, read_only=read_only)).status == 200


async def test_a_summary_is_json_as_it_is() -> None:
    answer = await ask("GET", "/stats/summary")
    assert answer.headers["content-type"] == "application/json"
    assert answer.body == b'{\n "node": {}\n}'


@pytest.mark.parametrize(
    ("query", "only"),
    [
        ("", False),
        ("?only_cpu_and_memory=true", True),
        ("?only_cpu_and_memory=True", False),
        ("?only_cpu_and_memory=1", False),
        ("?only_cpu_and_memory=true&only_cpu_and_memory=true", False),
        ("?only_cpu_and_memory", False),
    ],
)
async def test_the_parameter_counts_when_it_is_there_exactly_once(query: str, only: bool) -> None:
    # http.md: "only_cpu_and_memory=true (exactly one value, in the URL or a POST form)"
    node = MeasuringNode()
    await ask("GET", f"/stats/summary{query}", node=node)
    assert node.stats.asked == [only]


@pytest.mark.parametrize(("query", "only"), [("", True), ("?only_cpu_and_memory=true", False)])
async def test_a_form_counts_together_with_the_url(query: str, only: bool) -> None:
    node = MeasuringNode()
    body = b"only_cpu_and_memory=true"
    answer = await ask("POST", f"/stats/summary{query}", node=node, headers=FORM, body=body)
    assert (answer.status, node.stats.asked) == (200, [only])


async def test_other_methods_and_formats_are_refused() -> None:
    answer = await ask("PUT", "/stats/summary")
    assert (answer.status, answer.text, answer.headers["allow"]) == (405, "405: Method Not Allowed", "GET, POST")
    # http.md: "/stats/summary ... answer 406 ... to an Accept header without application/json or */*"
    assert (await ask("GET", "/stats/summary", headers={"Accept": "text/html"})).status == 406


async def test_there_is_nothing_else_below_stats() -> None:
    # http.md: "/stats/ itself has no handler (404)"
    assert (await ask("GET", "/stats/")).status == 404
    assert (await ask("GET", "/stats/container")).status == 404


async def test_any_method_gives_metrics_with_their_headers() -> None:
    for path in ("/metrics/resource", "/metrics/cadvisor"):
        answer = await ask("DELETE", path)
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
        assert int(answer.headers["process-start-time-unix"]) > 0


async def test_large_pages_are_packed_for_who_takes_that() -> None:
    answer = await ask("GET", "/metrics/cadvisor", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body).startswith(b"container_scrape_error 0\n")


async def test_a_node_that_cannot_be_read_is_an_error_with_its_reason() -> None:
    # http.md: "500 Internal Error: <error>"
    node = MeasuringNode(stats=FakeStats(broken="failed to get root cgroup stats: gone"))
    answer = await ask("GET", "/stats/summary", node=node)
    assert (answer.status, answer.text) == (500, "Internal Error: failed to get root cgroup stats: gone")
    assert (await ask("GET", "/metrics/cadvisor", node=node)).status == 500


@pytest.mark.parametrize("read_only", [False, True])
async def test_form_of_many_fields_is_refused(read_only: bool) -> None:
    node = MeasuringNode()
    answer = await ask("POST", "/stats/summary", node=node, headers=FORM, body=b"a&" * 4000, read_only=read_only)
    assert (answer.status, node.stats.asked) == (413, [])


async def test_charset_of_a_form_is_not_the_clients_choice() -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=rot13"}
    assert (await ask("POST", "/stats/summary", headers=headers, body=b"a=b")).status == 200


async def test_query_of_many_fields_is_refused() -> None:
    node = MeasuringNode()
    answer = await ask("GET", "/stats/summary?" + "a&" * 20_000, node=node)
    assert (answer.status, node.stats.asked) == (400, [])
