"""The URL source: what it does with answers (virtual time), and real requests to a server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from glasslet.api.pod import Pod
from glasslet.sources.manifest_fetch import Answer, FetchFailed, fetch, without_password
from glasslet.sources.url import URLSource, URLSourceConfig
from tests.builders.manifests import READER, manifest, text_of
from tests.fakes.waits import WaitLog

URL = "http://user:hunter2@manifests.example.com/pods?token=hunter3"


def ok(*names: str) -> Answer:
    value = {"apiVersion": "v1", "kind": "PodList", "items": [manifest(name) for name in names]}
    return Answer(200, "OK", text_of(value).encode())


class Server:
    """Gives one prepared answer after the other, the last one for ever."""

    def __init__(self, *answers: Answer | FetchFailed) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.sent: Mapping[str, Sequence[str]] = {}

    async def fetch(self, url: str, headers: Mapping[str, Sequence[str]]) -> Answer:
        self.asked += 1
        self.sent = headers
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, FetchFailed):
            raise answer
        return answer


class Outcome:
    def __init__(self) -> None:
        self.recorder = WaitLog()
        self.deliveries: list[list[str]] = []

    def deliver(self, pods: list[Pod]) -> None:
        self.deliveries.append([pod.metadata.name.removesuffix("-node-1") for pod in pods])


async def after(seconds: float, server: Server) -> Outcome:
    """What has happened when the source has run for this long, asking every 20 s."""
    outcome = Outcome()
    source = URLSource(
        config=URLSourceConfig(url=URL, headers={"Authorization": ["hunter4"]}, check_seconds=20),
        reader=READER,
        deliver=outcome.deliver,
        recorder=outcome.recorder,
        fetch=server.fetch,
    )
    task = asyncio.ensure_future(source.run())
    await asyncio.wait([task], timeout=seconds)
    task.cancel()
    await asyncio.wait([task])
    return outcome


@pytest.mark.looptime
async def test_asks_at_once_and_then_every_period() -> None:
    # behaviours.md §13: "URL (each httpCheckFrequency, Pod or PodList)"
    server = Server(ok("a"))
    await after(50, server)
    assert server.asked == 3


@pytest.mark.looptime
async def test_unchanged_bytes_are_ignored() -> None:
    # behaviours.md §13: "unchanged bytes are ignored"
    assert (await after(100, Server(ok("a")))).deliveries == [["a"]]


@pytest.mark.looptime
async def test_changed_bytes_are_delivered() -> None:
    assert (await after(50, Server(ok("a"), ok("a", "b")))).deliveries == [["a"], ["a", "b"]]


@pytest.mark.looptime
async def test_a_single_pod_is_fine_too() -> None:
    answer = Answer(200, "OK", text_of(manifest()).encode())
    assert (await after(1, Server(answer))).deliveries == [["web"]]


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (Answer(500, "Internal Server Error", b"x"), "answered 500 Internal Server Error"),
        (Answer(204, "", b""), "answered 204"),
        (Answer(200, "OK", b"kind: ["), "the answer cannot be used: line 2: "),
        (
            Answer(200, "OK", b"kind: Deployment\napiVersion: v1"),
            'the answer cannot be used: line 1: kind "Deployment"',
        ),
        (FetchFailed("no connection: Connection refused"), "no connection: Connection refused"),
    ],
    ids=["status", "other success", "yaml", "kind", "connection"],
)
async def test_a_bad_answer_is_one_finding_and_the_pods_stay(bad: Answer | FetchFailed, said: str) -> None:
    # behaviours.md §13: "an answer other than 200 or an empty body is an error"
    outcome = await after(100, Server(ok("a"), bad))
    assert outcome.deliveries == [["a"]]
    assert len(outcome.recorder.findings) == 1
    assert outcome.recorder.findings[0].startswith(f"pods from http://manifests.example.com/pods: {said}")


@pytest.mark.looptime
async def test_a_good_answer_takes_the_finding_back() -> None:
    outcome = await after(100, Server(FetchFailed("no connection"), ok("a")))
    assert outcome.recorder.findings == []


@pytest.mark.looptime
async def test_an_empty_body_marks_the_source_as_seen_with_no_pods() -> None:
    # behaviours.md §13: "(empty body still marks the source as seen, with no pods)"
    outcome = await after(1, Server(Answer(200, "OK", b"")))
    assert outcome.deliveries == [[]]
    assert len(outcome.recorder.findings) == 1


@pytest.mark.looptime
async def test_the_same_pods_come_back_after_an_empty_body() -> None:
    outcome = await after(50, Server(ok("a"), Answer(200, "OK", b""), ok("a")))
    assert outcome.deliveries == [["a"], [], ["a"]]


@pytest.mark.looptime
async def test_nothing_secret_is_told() -> None:
    server = Server(FetchFailed("x"))
    outcome = await after(1, server)
    assert server.sent == {"Authorization": ["hunter4"]}
    told = [*outcome.recorder.findings, *(on for _, on in outcome.recorder.ended)]
    assert told
    assert not any("hunter" in text for text in told)


@pytest.mark.parametrize("url", ["http://[", "", "x", "http://u:p@h/x?q#f"])
def test_any_url_can_be_shown(url: str) -> None:
    assert without_password(url) in ("the manifest URL", "http://h/x")


@asynccontextmanager
async def listening(handler: object) -> AsyncIterator[str]:
    """A server on loopback that answers every request with `handler`."""
    application = web.Application()
    application.router.add_get("/{tail:.*}", handler)  # type: ignore[arg-type]
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/pods"
    finally:
        await runner.cleanup()


async def test_a_real_request_sends_the_headers_and_reads_the_body() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=201, text=",".join(request.headers.getall("X-Token")))

    async with listening(handler) as url:
        answer = await fetch(url, {"X-Token": ["a", "b"]})
    assert answer == Answer(201, "Created", b"a,b")


async def test_a_body_without_end_is_cut_off() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            for _ in range(200):
                await response.write(b"x" * 100_000)
        except ConnectionError:
            pass
        return response

    async with listening(handler) as url:
        with pytest.raises(FetchFailed, match="larger than 10485760 bytes"):
            await fetch(url, {})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/x", "nonsense", "http://", "ftp://127.0.0.1/x", "http://127.0.0.1:99999/"]
)
async def test_a_request_that_cannot_be_made_says_why(url: str) -> None:
    with pytest.raises(FetchFailed) as error:
        await fetch(url, {})
    assert str(error.value)
