"""Approves and signs certificate requests of the in-memory API server, as kube-controller-manager does."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from glasslet.api.codec import convert
from glasslet.identity.signing_objects import CertificateSigningRequest
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import Unavailable
from glasslet.kubeapi.protocols import WatchEvent
from tests.builders.signing import SigningAuthority
from tests.fakes.api_server import FakeAPIServer

RESOURCE = "certificatesigningrequests"


class SigningController:
    """Signs every request after `delay` seconds for `life`; not at all while `approves` is False.

    `seen`: the requests in the order of their creation, with the loop's time."""

    def __init__(self, server: FakeAPIServer, *, life: timedelta, delay: float = 0.0) -> None:
        self._server = server
        self.authority = SigningAuthority()
        self.life = life
        self.delay = delay
        self.approves = True
        self.denies = False
        self.seen: list[tuple[float, CertificateSigningRequest]] = []

    async def run(self) -> None:
        """Watches until cancelled."""
        done: set[str] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                with contextlib.suppress(Unavailable):
                    async for event in self._watch():
                        request = event.object
                        if isinstance(request, CertificateSigningRequest) and request.metadata.uid not in done:
                            done.add(request.metadata.uid)
                            self.seen.append((asyncio.get_running_loop().time(), request))
                            group.create_task(self._answer(request))
                await asyncio.sleep(1)

    def _watch(self) -> AsyncIterator[WatchEvent[CertificateSigningRequest]]:
        return self._server.watch(paths.CERTIFICATE_REQUESTS, CertificateSigningRequest, resource_version="100")

    async def _answer(self, request: CertificateSigningRequest) -> None:
        await asyncio.sleep(self.delay)
        if self.denies:
            self.condition(request.metadata.name, "Denied", {})
        elif self.approves:
            self.sign(request.metadata.name)

    def sign(self, name: str) -> None:
        """Approves and signs one request."""
        plain = self._server.get_plain(RESOURCE, "", name)
        assert plain is not None
        request = base64.b64decode(plain["spec"]["request"])
        begin = self._server.clock.now()
        certificate = self.authority.sign(request, begin, begin + self.life)
        self.condition(name, "Approved", {"certificate": base64.b64encode(certificate).decode()})

    def condition(self, name: str, kind: str, more: dict[str, Any]) -> None:
        """Sets one condition of a request."""
        condition = {"type": kind, "status": "True", "reason": "Test", "message": "as the test says"}
        self._server.change(RESOURCE, "", name, {"status": {"conditions": [condition], **more}})

    def request(self, number: int) -> CertificateSigningRequest:
        """The request of that number as it is now."""
        name = self.seen[number][1].metadata.name
        plain = self._server.get_plain(RESOURCE, "", name)
        assert plain is not None
        return convert(plain, CertificateSigningRequest)
