"""Static pods from a URL that is polled: a Pod or a PodList.

Rules: behaviours.md §13. An answer that cannot be used changes nothing: the pods of the last good one stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct, field

from glasslet.api.pod import Pod
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.config.document import DocumentError
from glasslet.config.documents import load_documents
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind
from glasslet.sources.manifest import MAX_BYTES, ManifestReader, Problem
from glasslet.sources.manifest_fetch import Answer, FetchFailed, fetch, without_password
from glasslet.sources.names import HTTP
from glasslet.sources.static import Origin

_log = logging.getLogger(__name__)

Fetch = Callable[[str, Mapping[str, Sequence[str]]], Awaitable[Answer]]


class URLSourceConfig(Struct, frozen=True):
    """`url`: flag --manifest-url, staticPodURL; `headers`: staticPodURLHeader (they may hold tokens: never logged)."""

    url: str
    headers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    check_seconds: float = 20.0
    """httpCheckFrequency: the pause between two requests."""

    def __repr__(self) -> str:
        return f"URLSourceConfig(url={without_password(self.url)!r}, check_seconds={self.check_seconds})"


class URLSource:
    """Gives `deliver` all pods that the URL names, whenever the answer changed. Bad answers become findings."""

    def __init__(
        self,
        *,
        config: URLSourceConfig,
        reader: ManifestReader,
        deliver: Callable[[list[Pod]], None],
        recorder: Recorder,
        fetch: Fetch = fetch,
    ) -> None:
        self._threads = OwnThreads("manifests of a URL")
        self._config = config
        self._reader = reader
        self._deliver = deliver
        self._recorder = recorder
        self._fetch = fetch
        self._shown_url = without_password(config.url)
        self._last_body: bytes | None = None
        self._reported: str | None = None
        self._trouble = StandingFinding(recorder)

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await self._ask()
            await asyncio.sleep(self._config.check_seconds)

    async def _ask(self) -> None:
        try:
            with self._recorder.wait(WaitKind.API_CALL, on=f"GET {self._shown_url}"):
                answer = await self._fetch(self._config.url, self._config.headers)
        except FetchFailed as error:
            self._failed(str(error))
            return
        if answer.status != 200:
            self._failed(f"answered {answer.status} {answer.reason}".rstrip())
        elif not answer.body:
            # No pods, but the source counts as reported, as upstream has it, which calls it an error nevertheless.
            self._last_body = None
            self._deliver([])
            self._failed("answered with zero-length data")
        elif answer.body != self._last_body:
            self._last_body = answer.body
            await self._read(answer.body)
        elif self._reported is None or self._reported.startswith(_ABOUT_CONTENT):
            return
        else:
            self._recovered()

    async def _read(self, body: bytes) -> None:
        pods = await self._threads.run(self._pods, body)
        if isinstance(pods, Problem):
            line = f"line {pods.line}: " if pods.line else ""
            self._failed(f"{_ABOUT_CONTENT} {line}{pods.message}")
        else:
            self._recovered()
            self._deliver(pods)

    def _pods(self, body: bytes) -> list[Pod] | Problem:
        try:
            documents = load_documents(body, origin=self._shown_url, max_bytes=MAX_BYTES, tolerate_duplicates=True)
        except DocumentError as error:
            return Problem(self._shown_url, error.message, error.line)
        if not documents:
            return Problem(self._shown_url, "is empty, want a Pod or a PodList")
        return self._reader.pods(documents[0], Origin(HTTP, self._config.url))

    def _failed(self, reason: str) -> None:
        if reason != self._reported:
            self._reported = reason
            self._trouble.is_(f"pods from {self._shown_url}: {reason}")
            _log.warning("cannot read pods from URL", extra={"url": self._shown_url, "reason": reason})

    def _recovered(self) -> None:
        if self._reported is not None:
            self._reported = None
            self._trouble.over()
            _log.info("reading pods from URL works again", extra={"url": self._shown_url})


_ABOUT_CONTENT = "the answer cannot be used:"
