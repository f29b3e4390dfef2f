"""The page over a real agent and a real containerd: a hold set, stepped and released by clicking and by keys."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import OwnNetwork
from tests.browser.conftest import DESKTOP, noted, show
from tests.fakes.agent import NODE, Agent, agent_on, busybox_pod
from tests.fakes.containerd import PrivateContainerd

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(240)]
WEB = [sys.executable, "-c", "from glasslet.cli.app import main; main()"]
HELD = f"held-{NODE}"


@pytest.fixture
def agent(containerd: PrivateContainerd, folder: Path) -> Iterator[Agent]:
    with agent_on(containerd, folder) as agent:
        yield agent


@pytest.fixture
def address(agent: Agent, network: OwnNetwork) -> Iterator[str]:
    """What `glasslet web` prints."""
    # The socket is there a moment after the process.
    for _ in range(100):
        command = [*network.prefix, *WEB, "--root-dir", str(agent.root), "web", "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            if line := program.stdout.readline().strip():
                yield line
                program.terminate()
                return
    pytest.fail("glasslet web finds no agent")


@pytest.fixture
def page(browser: Any, address: str, trouble: list[str]) -> Iterator[Any]:
    context = browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
    page = context.new_page()
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: noted(trouble, message))
    page.goto(address)
    page.wait_for_selector("#live:not([data-off])")
    yield page
    context.close()


def test_a_hold_is_set_stepped_and_released_by_clicking(agent: Agent, page: Any, trouble: list[str]) -> None:
    show(page, "stations")
    page.locator(".stn", has_text="sandbox").click()
    page.locator("input[name=pod]").fill("default/held-*")
    page.wait_for_selector("button[type=submit]:not([disabled])")
    page.locator("button", has_text="Set the break").click()
    page.wait_for_selector(".stn.brk")
    agent.put(busybox_pod("held"))
    page.wait_for_selector(".stn.brk .dot[data-s=held]", timeout=60_000)
    assert "1 held" in page.locator(".trouble").inner_text().replace("\n", " ")

    other = page.context.new_page()
    other.goto(page.url.split("#")[0] + "#pods")
    row = other.locator("tr", has_text=HELD)
    row.wait_for()
    assert row.get_attribute("data-s") == "held"

    page.locator(".trouble a[data-s=held]").click()
    page.locator("tr[data-uid] a", has_text=HELD).click()
    page.wait_for_selector(".holdbar:visible")
    assert "Held at sandbox" in page.locator(".holdbar").inner_text()
    assert "held" in page.locator("#why .say p").inner_text().lower()
    page.locator("button", has_text="Inspect").click()
    page.wait_for_selector("#dialog .paths dt")
    page.keyboard.press("Escape")
    page.wait_for_selector(".holdbar button:not([disabled])")
    page.locator(".holdbar button", has_text="Step").click()
    page.wait_for_selector(".held .passed:visible", timeout=40_000)
    assert "now held at" in page.locator(".held .passed").inner_text()
    page.wait_for_function("() => !document.querySelector('.holdbar .t').textContent.includes('Held at sandbox for')")
    page.keyboard.press("c")
    page.wait_for_selector(".crumb .chip[data-s=fine]", timeout=60_000)
    page.wait_for_function("() => document.querySelector('.shares').textContent.includes('held')", timeout=10_000)
    other.wait_for_selector(f"tr[data-s=fine] a:has-text('{HELD}')", timeout=5000)
    assert trouble == []


def test_the_views_have_what_a_real_runtime_did(agent: Agent, page: Any, trouble: list[str]) -> None:
    agent.put(busybox_pod("web"))
    name = f"web-{NODE}"
    page.wait_for_selector("main h1", state="attached")
    show(page, "pods")
    page.wait_for_selector(f"tr[data-s=fine] a:has-text('{name}')", timeout=60_000)
    page.wait_for_selector(".mini rect")
    show(page, f"pod/default/{name}")
    page.wait_for_selector(".labels [role=option]:has-text('sandbox')")
    assert "runtime" in page.locator(".shares").inner_text()
    assert page.locator("#decisions .dec").count() > 0
    show(page, "node")
    page.wait_for_selector(".calls-t th:has-text('RunPodSandbox')")
    # The agents of tests evict at no line.
    gauge = page.locator(".gauge").first.inner_text()
    assert "no line is set" in gauge
    assert "from MemTotal of /proc/meminfo" in gauge
    page.locator("details.gauge summary").click()
    page.wait_for_selector("details.gauge .how:has-text('No pod would be evicted')")
    show(page, "calls/start")
    page.wait_for_selector(".tree tbody tr", timeout=15_000)
    page.wait_for_selector(".code .on")
    assert trouble == []


SET_BREAK = """(pod) => fetch('v1/breaks', {
  method: 'POST', headers: {'X-Glasslet': '1', 'Content-Type': 'application/json'},
  body: JSON.stringify({at: 'sandbox', pod}),
}).then(r => r.status)"""


def test_the_next_step_of_a_held_pod_is_traced(agent: Agent, page: Any, trouble: list[str]) -> None:
    page.wait_for_selector("main h1", state="attached")
    assert page.evaluate(SET_BREAK, "default/held-*") == 200
    agent.put(busybox_pod("held"))
    show(page, "pods")
    page.wait_for_selector(f"tr[data-s=held] a:has-text('{HELD}')", timeout=60_000)
    page.evaluate("name => { location.hash = 'calls/default/' + name }", HELD)
    page.locator("button", has_text="Trace next step").click()
    page.wait_for_selector(".tree tbody tr", timeout=60_000)
    page.locator("input[aria-label='Find in calls']").fill("run_sandbox")
    page.wait_for_selector(".tree tr.hit:has-text('run_sandbox')", timeout=60_000)
    page.wait_for_function("() => !document.querySelector('section header .dim').textContent.includes('tracing')")

    tree, split = page.locator(".two section").first, page.locator(".split")
    before = tree.bounding_box()["width"]
    split.focus()
    page.keyboard.press("ArrowLeft")
    narrower = tree.bounding_box()["width"]
    assert narrower < before
    box = split.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 104, box["y"] + 40, steps=4)
    page.mouse.up()
    dragged = tree.bounding_box()["width"]
    assert dragged > narrower + 60
    show(page, "calls/start")
    page.wait_for_selector(".tree tbody tr", timeout=15_000)
    assert abs(page.locator(".two section").first.bounding_box()["width"] - dragged) < 2
    assert trouble == []
