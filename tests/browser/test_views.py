"""Each view shows what the agent answers, in words first."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.conftest import PHONE, OpenPage, show
from tests.browser.world import FAILING, HOSTILE, World, ready, seen

VIEWS = ["node", "pods", f"pod/{FAILING}", "pod/shop/web-7f6c9d8b4-9kd2m", "stations", "calls/start"]


def text(page: Any, selector: str) -> str:
    return str(page.locator(selector).first.inner_text())


def test_pods_lists_each_pod_with_what_it_does(world: World, open_page: OpenPage, trouble: list[str]) -> None:
    page = open_page(world, "pods")
    row = page.locator("tr", has_text="checkout-5d8f7c-pq4zt")
    assert row.get_attribute("data-s") == "failing"
    assert "back-off" in row.inner_text()
    assert page.locator(".pods tbody tr[data-uid]").count() == 9
    assert text(page, ".trouble").split() == ["2", "failing", "1", "held", "1", "waiting"]
    page.wait_for_selector(".mini rect")
    assert trouble == []


def test_the_node_opens_with_its_verdict_and_what_is_wrong(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "node")
    assert text(page, ".lead h2").startswith("node-a is ready")
    assert page.locator(".worst a").count() == 4
    assert "keeps failing: main container main exited with code 3" in text(page, ".worst")


def test_a_pod_opens_with_its_cause_and_has_all_parts(world: World, open_page: OpenPage, trouble: list[str]) -> None:
    page = open_page(world, f"pod/{FAILING}")
    assert "keeps failing: main container main exited with code 3" in text(page, "#why p")
    assert "last run" in text(page, "#why dl")
    assert text(page, "#why .next code").startswith("glasslet logs shop/checkout")
    assert page.locator(".labels [role=option]").count() > 5
    assert "CrashLoopBackOff" in text(page, "#containers")
    assert "http :8080/ready, every 5 s" in text(page, "#probes")
    assert page.locator("#probes svg[role=img]").get_attribute("aria-label").startswith("40 results")
    assert "back-off" in text(page, "#decisions")
    assert page.locator("#events .ev").count() > 10
    page.wait_for_selector("#logs .log li")
    assert trouble == []


def test_the_sentence_is_the_one_of_the_command_line(world: World, open_page: OpenPage) -> None:
    page = open_page(world, f"pod/{FAILING}")
    path = f"v1/pods/{FAILING}/why"
    answer = page.evaluate("path => fetch(path).then(r => r.json())", path)
    assert text(page, "#why p").split(", since")[0] == answer["sentence"].split(", since")[0]


def test_the_ledger_on_the_page_is_the_agents(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "pod/shop/web-7f6c9d8b4-9kd2m")
    path = "v1/pods/shop/web-7f6c9d8b4-9kd2m/trace"
    answer = page.evaluate("path => fetch(path).then(r => r.json())", path)
    runtime = next(share["ms"] for share in answer["shares"] if share["who"] == "runtime")
    assert f"runtime {round(runtime)} ms" in text(page, ".shares").replace("\n", " ")


def test_stations_shows_where_pods_stand(world: World, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(world, "stations")
    expect(page.locator(".stn", has_text="sandbox").locator(".ct")).to_have_text(re.compile("^3"))
    page.locator(".stn", has_text="started").click()
    assert "checkout" in text(page, ".stands .worst")


def test_a_station_has_the_median_of_its_passing(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "stations")
    page.wait_for_function("() => document.querySelector('.map').textContent.includes('p50')")
    card = page.locator(".stn").filter(has=page.locator(".nm", has_text=re.compile("^created$")))
    # Each start of this world takes 28 ms for it.
    assert "p50 28 ms" in card.inner_text()


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(world: World, open_page: OpenPage, axe: str, view: str) -> None:
    from tests.browser.axe import faults

    page = open_page(world, view, bypass_csp=True)
    page.wait_for_timeout(300)
    found = {"light": faults(page, axe)}
    page.locator("#theme").click()
    found["dark"] = faults(page, axe)
    page.set_viewport_size(PHONE)
    page.wait_for_timeout(200)
    found["phone"] = faults(page, axe)
    assert found == {"light": [], "dark": [], "phone": []}


def test_axe_finds_a_planted_fault(world: World, open_page: OpenPage, axe: str) -> None:
    from tests.browser.axe import faults

    page = open_page(world, "pods", bypass_csp=True)
    page.evaluate("document.querySelector('#theme').removeAttribute('aria-label')")
    assert any("button-name" in fault for fault in faults(page, axe))


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_needs_no_sideways_scrolling(world: World, open_page: OpenPage, view: str) -> None:
    page = open_page(world, view, viewport={"width": 320, "height": 640})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_hostile_text_is_shown_and_not_obeyed(bare_world: World, open_page: OpenPage, trouble: list[str]) -> None:
    pod = seen("shop/web-0", ready())
    bare_world.add(pod)
    bare_world.agent.source.logs["main"] = [f"{HOSTILE}\n".encode()]
    bare_world.do(lambda: bare_world.agent.record.finding(HOSTILE))
    page = open_page(bare_world, "pod/shop/web-0")
    page.wait_for_selector("#logs .log li")
    line = text(page, "#logs .log .t")
    assert "<img src=x onerror=alert(1)>" in line
    assert "U+202E" in line
    assert "ESC" in line
    assert page.locator("#logs img").count() == 0
    show(page, "node")
    assert "U+202E" in text(page, ".findings")
    assert "\u202e" not in page.evaluate("document.documentElement.outerHTML")
    assert trouble == []


def test_no_string_can_become_html(world: World, open_page: OpenPage) -> None:
    page = open_page(world)
    thrown = page.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; return '' } catch (e) { return e.name } }"
    )
    assert thrown == "TypeError"


def test_every_request_stays_on_the_page_s_own_address(world: World, open_page: OpenPage, browser: Any) -> None:
    page = open_page(world)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    for view in VIEWS:
        show(page, view)
    own = world.address.split("#")[0]
    assert asked
    assert [url for url in asked if not url.startswith((own, "data:"))] == []


def test_the_token_leaves_the_address(world: World, open_page: OpenPage) -> None:
    page = open_page(world)
    assert "token" not in page.url
    assert page.evaluate("document.cookie") == ""
    page.reload()
    page.wait_for_selector("#live:not([data-off])")


def test_without_the_token_the_page_says_what_to_do(world: World, browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(world.address.split("#")[0])
    page.wait_for_selector(".away:not([hidden])")
    assert "Run glasslet web again" in text(page, ".away")
    context.close()


def test_an_empty_node_says_what_would_fill_it(bare_world: World, open_page: OpenPage) -> None:
    page = open_page(bare_world, "pods")
    assert "glasslet up" in text(page, ".empty")


def test_a_pod_that_is_not_here_is_a_clear_answer(world: World, open_page: OpenPage) -> None:
    page = open_page(world)
    page.evaluate("location.hash = 'pod/shop/nothing'")
    page.wait_for_selector("text=No such pod here")
    assert "no pod shop/nothing on this node" in text(page, ".empty")


def test_durations_are_those_of_the_command_line(world: World, open_page: OpenPage) -> None:
    from glasslet.answers.words import duration, milliseconds

    seconds = [
        -1,
        0,
        0.0004,
        0.28,
        0.9994,
        0.9996,
        1,
        1.5,
        9.94,
        9.96,
        41,
        59.4,
        59.6,
        60,
        252,
        3599,
        3600,
        7500,
        86400,
        273600,
        9e6,
    ]
    values = [0.04, 0.44, 9.94, 9.96, 128, 999.4, 999.6, 2310, 9994, 9996, 41000, 252000]
    page = open_page(world)
    script = "([a, b]) => import('./words.js').then(w => [a.map(w.duration), b.map(w.ms)])"
    assert page.evaluate(script, [seconds, values]) == [
        [duration(one) for one in seconds],
        [milliseconds(one) for one in values],
    ]


PICTURE = """() => {
  const canvas = document.querySelector('.ov canvas');
  const points = canvas.getContext('2d').getImageData(0, 12 * devicePixelRatio, canvas.width, 1).data;
  const colours = new Set();
  for (let i = 0; i < points.length; i += 4) if (points[i + 3] === 255) colours.add(points.slice(i, i + 3).join());
  return colours.size;
}"""
SWATCHES = "() => [...document.querySelectorAll('.shares .sw')].map(el => getComputedStyle(el).background)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_forced_colours_leave_parties_and_states_apart(
    world: World, open_page: OpenPage, axe: str, scheme: str
) -> None:
    from tests.browser.axe import faults

    page = open_page(
        world, "pod/shop/web-7f6c9d8b4-9kd2m", forced_colors="active", color_scheme=scheme, bypass_csp=True
    )
    page.wait_for_selector(".shares .sw")
    swatches = page.evaluate(SWATCHES)
    assert len(swatches) > 3
    assert len(set(swatches)) == len(swatches)
    assert page.evaluate(PICTURE) >= 3
    assert faults(page, axe) == []
    show(page, "pods")
    icons = page.evaluate("[...document.querySelectorAll('td.st use')].map(el => el.getAttribute('href'))")
    assert {"#i-fine", "#i-failing", "#i-held", "#i-waiting"} <= set(icons)
    ink, ground = page.evaluate(
        "() => [getComputedStyle(document.querySelector('td.st')).color,"
        " getComputedStyle(document.documentElement).backgroundColor]"
    )
    assert ink != ground
