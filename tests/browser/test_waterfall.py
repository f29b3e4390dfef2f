"""The waterfall by mouse and keyboard, and at the size of thousands of bars."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from glasslet.record.events import StationSpan, Waited
from tests.browser.conftest import OpenPage, show
from tests.browser.world import World, ready, seen, start_of_a_pod, starting

POD = "pod/shop/web-7f6c9d8b4-9kd2m"
MOST_FRAME_MS = 8.0


@pytest.fixture
def page(world: World, open_page: OpenPage) -> Any:
    page = open_page(world, POD)
    page.wait_for_selector(".labels [role=option]")
    return page


def window(page: Any) -> str:
    page.wait_for_timeout(60)
    return str(page.locator(".ov .win").get_attribute("aria-valuetext"))


def test_the_keys_zoom_pan_and_show_all(page: Any) -> None:
    page.locator(".labels [aria-selected=true]").focus()
    whole = window(page)
    page.keyboard.press("w")
    page.keyboard.press("w")
    zoomed = window(page)
    assert zoomed != whole
    page.keyboard.press("d")
    assert window(page) != zoomed
    page.keyboard.press("0")
    assert window(page) == whole


def test_arrows_choose_rows_and_say_their_parts(page: Any) -> None:
    page.locator(".labels [aria-selected=true]").focus()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    assert "sandbox" in page.locator(".labels [aria-selected=true]").inner_text()
    page.keyboard.press("ArrowRight")
    assert "RunPodSandbox" in page.locator(".picked").inner_text()
    page.wait_for_function("() => document.querySelector('#say').textContent.includes('RunPodSandbox')")


def test_each_row_has_its_text_for_screen_readers(page: Any) -> None:
    row = page.locator(".labels [role=option]", has_text="sandbox")
    assert "RunPodSandbox" in row.text_content()


def test_a_plain_wheel_scrolls_the_page_and_ctrl_zooms(page: Any) -> None:
    whole = window(page)
    page.locator(".lane").hover()
    page.mouse.wheel(0, 200)
    page.wait_for_timeout(200)
    assert page.evaluate("scrollY") > 0
    assert window(page) == whole
    page.locator(".lane").hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    assert window(page) != whole


def test_a_dragged_range_shows_its_length_and_shares(page: Any) -> None:
    page.locator(".lane").scroll_into_view_if_needed()
    box = page.locator(".lane").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 100, steps=4)
    page.mouse.up()
    words = page.locator(".picked").inner_text()
    assert "chosen" in words
    assert "runtime" in words


def test_the_hover_card_names_the_owner(page: Any) -> None:
    page.locator(".lane").scroll_into_view_if_needed()
    box = page.locator(".lane").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 26 + 4 * 32 + 12)
    page.wait_for_selector(".tip:not([hidden])")
    assert "runtime" in page.locator(".tip").inner_text()


def test_t_shows_the_same_as_a_table(page: Any) -> None:
    page.locator(".labels [aria-selected=true]").focus()
    page.keyboard.press("t")
    assert "RunPodSandbox" in page.locator("#dialog").inner_text()
    page.keyboard.press("Escape")
    assert not page.locator("#dialog").is_visible()


def test_quiet_time_folds_and_unfolds(bare_world: World, open_page: OpenPage) -> None:
    now = datetime.now(UTC).timestamp()
    events = [*start_of_a_pod(now - 600)[:8], Waited(now - 599, now - 20, "back_off", "image", "main")]
    bare_world.add(seen("shop/web-0", starting()), events)
    page = open_page(bare_world, "pod/shop/web-0")
    page.wait_for_selector(".labels [role=option]")
    button = page.locator("button", has_text="Fold quiet time")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert button.get_attribute("aria-pressed") == "false"


def test_a_start_under_way_grows_and_names_what_is_not_reached(bare_world: World, open_page: OpenPage) -> None:
    now = datetime.now(UTC).timestamp()
    bare_world.add(seen("shop/web-0", starting()), start_of_a_pod(now - 5)[:6])
    page = open_page(bare_world, "pod/shop/web-0")
    page.wait_for_selector(".labels [role=option]")
    assert "not reached" in page.locator(".labels").text_content()
    before = page.locator(".wf header .dim").inner_text()
    page.wait_for_timeout(1500)
    assert page.locator(".wf header .dim").inner_text() != before


def test_a_frame_with_2000_bars_is_quick(bare_world: World, open_page: OpenPage) -> None:
    script = """async () => {
      const { modelOf, Folding } = await import('./ways.js');
      const { Painter } = await import('./wayspaint.js');
      const rows = Array.from({length: 100}, (_, r) => ({name: `row ${r}`, container: '', detail: '', outcome: '',
        open: false, beside: [], busyMs: 1,
        spans: Array.from({length: 20}, (_, i) => ({startMs: i * 50 + r, endMs: i * 50 + r + 30})),
        waits: Array.from({length: 20}, (_, i) => ({kind: 'cri_call', on: 'Call', who: 'runtime', outcome: 'ok',
          startMs: i * 50 + r + 2, endMs: i * 50 + r + 25}))}));
      const model = modelOf({start: '2026-01-01T00:00:00Z', totalMs: 1200, milestone: 'Ready', rows, gaps: [],
        ledger: [{who: 'runtime', startMs: 0, endMs: 1200}]}, 0);
      const folding = new Folding(model, true);
      const canvas = document.createElement('canvas');
      canvas.width = 1000; canvas.height = 3300;
      const painter = new Painter(canvas);
      const times = [];
      for (let i = 0; i < 40; i++) {
        const began = performance.now();
        painter.draw({model, folding, view: [i * 5, folding.length - i * 5], width: 1000, chosen: {row: 0, part: 0},
          range: null, cross: null});
        times.push(performance.now() - began);
      }
      return times.sort((a, b) => a - b)[20];
    }"""
    page = open_page(bare_world)
    assert page.evaluate(script) < MOST_FRAME_MS


def test_every_owner_of_a_bar_is_a_party_of_the_agent(world: World, open_page: OpenPage) -> None:
    from glasslet.glass.trace.shares import PARTIES

    page = open_page(world)
    script = "async (all) => { const w = await import('./ways.js'); return all.map(one => w.partyOf(one)) }"
    names = page.evaluate(script, [*PARTIES, ""])
    assert len(set(names)) == len(PARTIES) + 1


def test_a_ready_pod_of_an_earlier_agent_has_a_way_too(bare_world: World, open_page: OpenPage) -> None:
    bare_world.add(seen("shop/web-0", ready()), [StationSpan(1.7e9, 1.7e9 + 1, "sandbox")])
    page = open_page(bare_world)
    show(page, "pod/shop/web-0")
    page.wait_for_selector(".labels [role=option]")


def test_a_decision_points_at_its_bar_and_a_bar_at_its_decisions(page: Any) -> None:
    decision = page.locator("#decisions .dec").first
    decision.focus()
    chosen = page.locator(".labels [aria-selected=true]")
    assert "seen" not in chosen.inner_text()
    assert decision.evaluate("el => el.classList.contains('on')")
    page.locator(".labels [role=option]", has_text="status").click()
    assert not decision.evaluate("el => el.classList.contains('on')")
    label = page.evaluate("el => el.textContent", decision.element_handle())
    decision.hover()
    assert decision.evaluate("el => el.classList.contains('on')"), label
