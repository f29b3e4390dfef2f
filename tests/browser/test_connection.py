"""The agent goes and comes back while the page is open."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from glasslet.cli.page_server import PageServer
from tests.browser.chromium import OwnNetwork
from tests.browser.conftest import OpenPage
from tests.browser.world import World, fill, running_world


def test_a_dead_agent_is_said_and_its_return_too(
    folder: Path, network: OwnNetwork, browser: Any, open_page: OpenPage
) -> None:
    # The page's own server lives on, as `glasslet web` does: only the agent ends.
    with running_world(folder, network) as keeper:
        server = PageServer(folder / "agent" / "glasslet.sock")
        asyncio.run_coroutine_threadsafe(server.start(0), keeper.loop).result(10)
        keeper.server, own = server, keeper.server
        (folder / "agent").mkdir()
        with running_world(folder / "agent", network) as world:
            fill(world)
            page = open_page(keeper, "pods")
            page.evaluate("window.sameDocument = true")
            page.wait_for_selector("tr[data-uid]")
            page.keyboard.press("j")
            page.keyboard.press("j")
            chosen = page.evaluate("document.activeElement.textContent")
        page.wait_for_selector(".away:not([hidden])", timeout=15_000)
        assert "The agent does not answer since" in page.locator(".away").inner_text()
        assert page.locator("tr[data-uid]").count() == 9
        assert "as of" in page.locator("#live").inner_text()
        with running_world(folder / "agent", network) as world:
            fill(world)
            page.wait_for_selector("#live:not([data-off])", timeout=15_000)
            page.wait_for_function("() => document.querySelector('.away').textContent.includes('is back')")
            assert page.locator("tr[data-uid]").count() == 9
            assert page.evaluate("window.sameDocument") is True
            assert page.evaluate("document.activeElement.textContent") == chosen
        keeper.server = own
        asyncio.run_coroutine_threadsafe(server.stop(), keeper.loop).result(10)


def test_another_view_does_not_reload_the_document(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "pods")
    page.evaluate("window.sameDocument = true")
    page.locator(".tabs a", has_text="Node").click()
    page.wait_for_selector(".lead h2")
    page.go_back()
    page.wait_for_selector("tr[data-uid]")
    assert page.evaluate("window.sameDocument") is True


def test_a_page_without_news_sleeps(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "pods")
    page.wait_for_timeout(1500)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def busy() -> float:
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return float(metrics["TaskDuration"])

    before = busy()
    page.wait_for_timeout(3000)
    assert (busy() - before) / 3 < 0.05
