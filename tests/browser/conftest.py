"""One browser for all tests of this folder, and an agent of its own for each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.axe import axe_source
from tests.browser.chromium import OwnNetwork, chromium_in, own_network
from tests.browser.world import World, fill, running_world

DESKTOP = {"width": 1360, "height": 900}
PHONE = {"width": 360, "height": 740}
OpenPage = Callable[..., Any]


@pytest.fixture(scope="package")
def network() -> Iterator[OwnNetwork]:
    with own_network() as network:
        yield network


@pytest.fixture(scope="package")
def browser(network: OwnNetwork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="BROWSER TESTS NOT RUN: playwright is not installed")
    program = chromium_in(network, tmp_path_factory.mktemp("chromium"))
    with sync_api.sync_playwright() as playwright:
        # The kernel protects the sandbox's user namespaces from root; the page under test is ours.
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-lcd-text", "--force-color-profile=srgb"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def axe() -> str:
    return axe_source()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: sockets live in it."""
    with tempfile.TemporaryDirectory(prefix="glp-") as name:
        yield Path(name)


@pytest.fixture
def bare_world(folder: Path, network: OwnNetwork) -> Iterator[World]:
    """An agent without pods."""
    with running_world(folder, network) as world:
        yield world


@pytest.fixture
def world(bare_world: World) -> World:
    """An agent with pods of every kind."""
    fill(bare_world)
    return bare_world


@pytest.fixture
def trouble() -> list[str]:
    """What the browser complained about: errors of scripts, and of the policy."""
    return []


@pytest.fixture
def open_page(browser: Any, trouble: list[str]) -> Iterator[OpenPage]:
    """Opens the page of a world at a view; its context can be given options of Playwright."""
    contexts: list[Any] = []

    def opened(world: World, view: str = "", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce", **options})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda message: noted(trouble, message))
        page.goto(world.address)
        page.wait_for_selector("#live:not([data-off])")
        page.wait_for_selector("main h1", state="attached")
        if view:
            show(page, view)
        return page

    yield opened
    for context in contexts:
        context.close()


def noted(trouble: list[str], message: Any) -> None:
    # A route that this agent does not have is an answer.
    if message.type == "error" and "404" not in message.text:
        trouble.append(message.text)


def show(page: Any, view: str) -> None:
    """Goes to a view and waits for its data."""
    page.evaluate("view => { location.hash = view }", view)
    page.wait_for_function("() => document.querySelector('main h1') && !document.querySelector('main .bones')")
