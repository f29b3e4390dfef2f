"""The page on the kubelet's HTTPS port, opened by a browser that has a client certificate, and by one that has none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from glasslet.concurrency.clock import SystemClock
from glasslet.glass.page.source import PageSource
from glasslet.glass.routes import network_routes
from glasslet.server.access.authentication import CertificateAuthenticator
from glasslet.server.access.users import Attributes
from glasslet.server.kubelet_server import Bind, KubeletServer, Served
from glasslet.server.routes import RouteSwitches, https_routes
from glasslet.server.transport.limits import ConnectionLimits
from glasslet.server.transport.tls import ServingTLS, TLSFiles
from glasslet.server.transport.tls_options import TLSOptions
from tests.browser.chromium import PROGRAM, OwnNetwork, chromium_in
from tests.browser.world import ready, seen
from tests.builders.certificates import Authority
from tests.component.server_fixture import access
from tests.fakes.glass import fake_agent
from tests.fakes.server_sources import FakeNode

T = TypeVar("T")


class AnnLooks:
    """Ann may look at a node, and at nothing else."""

    async def allows(self, attributes: Attributes) -> bool:
        return (attributes.user.name, attributes.verb, attributes.subresource) == ("ann", "get", "glass")


@contextmanager
def https_port(folder: Path, authority: Authority, network: OwnNetwork) -> Iterator[str]:
    """The address of an agent's page on its HTTPS port, in that network."""
    addresses: list[str] = []
    serving, stop = threading.Event(), threading.Event()

    async def main() -> None:
        network.enter()
        certificate, key = authority.issue(folder / "server", server=True)
        files = TLSFiles(certificate, key, authority.write(folder / "ca.crt"))
        async with fake_agent(folder) as agent:
            agent.source.seen.append(seen("shop/web-0", ready()))
            node = FakeNode()
            routes = network_routes(agent.source.functions(), agent.keeper, PageSource(), debugging=True)
            server = KubeletServer(
                bind=Bind("127.0.0.1", 0),
                served=Served(https_routes(node.sources(), RouteSwitches()), frozenset(), tuple(routes)),
                metrics=node.metrics.http,
                access=access(CertificateAuthenticator(SystemClock()), authorizer=AnnLooks()),
                limits=ConnectionLimits(shutdown_seconds=0.1),
                tls=ServingTLS(files=files, options=TLSOptions(), clock=SystemClock()),
            )
            await server.start()
            addresses.append(f"https://127.0.0.1:{server.port}")
            serving.set()
            await asyncio.to_thread(stop.wait)
            await server.stop()

    thread = threading.Thread(target=lambda: asyncio.run(main()), name="HTTPS port", daemon=True)
    thread.start()
    assert serving.wait(20)
    try:
        yield addresses[0]
    finally:
        stop.set()
        thread.join(20)


@pytest.fixture
def visit(
    folder: Path, network: OwnNetwork, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, Callable[[Any], T]], T]]:
    """Opens the page as somebody and passes it to a function. Playwright passes certificates on by a proxy of its own:
    it has to live in the page's network, too, so it is started by a thread of that network."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="BROWSER TESTS NOT RUN: playwright is not installed")
    chromium_in(network, tmp_path_factory.mktemp("chromium"))
    authority = Authority()

    def open_as(who: str, look: Callable[[Any], T], address: str) -> T:
        network.enter()
        options: dict[str, Any] = {"ignore_https_errors": True}
        if who:
            certificate, key = authority.issue(folder / who, common_name=who)
            options["client_certificates"] = [{"origin": address, "certPath": certificate, "keyPath": key}]
        with sync_api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
            page = browser.new_page(**options)
            answer = page.goto(f"{address}/glass/")
            assert answer is not None
            page.status = answer.status
            found = look(page)
            browser.close()
        return found

    with https_port(folder, authority, network) as address, ThreadPoolExecutor(1) as thread:
        yield lambda who, look: thread.submit(open_as, who, look, address).result(120)


def test_a_client_certificate_opens_the_page(visit: Callable[..., Any]) -> None:
    def look(page: Any) -> tuple[str, str, str]:
        page.evaluate("location.hash = 'pods'")
        row = page.locator("tr[data-uid]").inner_text(timeout=20_000)
        page.evaluate("location.hash = 'stations'")
        page.wait_for_selector("button[type=submit][disabled]")
        return row, page.locator("#live").inner_text(), page.locator(".form .error").inner_text()

    row, live, why = visit("ann", look)
    assert "web-0" in row
    assert live == "live"
    # This port has no routes of stops; with them the reason would be the verb that is missing.
    assert why == "this agent has no stops"


@pytest.mark.parametrize(("who", "status"), [("", 401), ("bob", 403)])
def test_without_the_right_there_is_no_page(visit: Callable[..., Any], who: str, status: int) -> None:
    found, text = visit(who, lambda page: (page.status, page.locator("body").inner_text()))
    assert found == status
    assert "web-0" not in text
