"""The table of pods under load, and by keyboard: nothing moves below a reader's hand."""

from __future__ import annotations

from typing import Any

from glasslet.api.pod_status import PodStatus
from tests.browser.conftest import OpenPage, show
from tests.browser.world import FAILING, World, crashing, ready, seen

MOST_SECONDS = 1.0
MANY = 250


def many(world: World, count: int = MANY) -> None:
    status, bad = ready(), crashing()
    for number in range(count):
        world.add(seen(f"shop/web-{number:03}", bad if number % 25 == 0 else status))


def order(page: Any) -> list[str]:
    return [str(one) for one in page.evaluate("[...document.querySelectorAll('tr[data-uid]')].map(r => r.dataset.uid)")]


def test_250_pods_are_there_within_a_second(bare_world: World, open_page: OpenPage) -> None:
    many(bare_world)
    page = open_page(bare_world, "pods")
    page.add_init_script(
        "new MutationObserver(() => { if (!window.full && document.querySelectorAll('tr[data-uid]').length >= 250)"
        " window.full = performance.now() }).observe(document, {childList: true, subtree: true})"
    )
    page.reload()
    page.wait_for_function("() => window.full")
    assert page.evaluate("window.full") < MOST_SECONDS * 1000


def test_no_row_moves_under_the_pointer_during_a_burst(bare_world: World, open_page: OpenPage) -> None:
    many(bare_world, 30)
    page = open_page(bare_world, "pods?sort=state")
    page.wait_for_function("() => document.querySelectorAll('tr[data-uid]').length === 30")
    before = order(page)
    for number in range(1, 6):
        page.locator("tr[data-uid]").nth(10 + number).hover()
        bare_world.change(f"shop/web-{number:03}", status=crashing())
        bare_world.add(seen(f"shop/new-{number}", ready()))
        page.wait_for_timeout(300)
    page.wait_for_function("() => document.querySelector('.moved').textContent.includes('5 new')")
    assert order(page) == before
    page.keyboard.press("r")
    assert order(page) != before
    assert len(order(page)) == 35


def test_the_selection_follows_the_pod(bare_world: World, open_page: OpenPage) -> None:
    many(bare_world, 5)
    page = open_page(bare_world, "pods")
    page.wait_for_selector("tr[data-uid]")
    for _ in range(3):
        page.keyboard.press("j")
    chosen = page.evaluate("document.activeElement.textContent")
    bare_world.add(seen("a/first", ready()))
    page.wait_for_timeout(1200)
    page.keyboard.press("r")
    page.wait_for_function("() => document.querySelectorAll('tr[data-uid]').length === 6")
    assert page.evaluate("document.activeElement.textContent") == chosen


def test_words_chips_and_the_address_filter(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "pods")
    page.keyboard.press("/")
    page.keyboard.type("shop image")
    assert page.locator("tr[data-uid]").count() == 1
    assert "q=shop+image" in page.url
    page.keyboard.press("Escape")
    page.locator(".seg button[data-s=failing]").click()
    assert page.locator("tr[data-uid]").count() == 2
    page.reload()
    page.wait_for_selector("tr[data-uid]")
    assert page.locator("tr[data-uid]").count() == 2


def test_an_empty_filter_says_how_to_clear_it(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "pods?q=nothinglikeit")
    page.wait_for_selector(".empty")
    assert "nothinglikeit" in page.locator(".empty").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("tr[data-uid]").count() == 9


def test_two_clicks_lead_to_a_cause_from_every_view(world: World, open_page: OpenPage) -> None:
    page = open_page(world)
    for view in ("node", "pods", "stations", "calls/start"):
        show(page, view)
        page.locator(".trouble a[data-s=failing]").click()
        page.locator("tr[data-uid] a", has_text="checkout").click()
        page.wait_for_selector("#why .say p")
        assert "exited with code 3" in page.locator("#why").inner_text()


def test_the_keyboard_alone_leads_to_a_cause(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "node")
    page.keyboard.press("2")
    page.wait_for_selector("tr[data-uid]")
    page.keyboard.press("f")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_selector("#why .say p")
    assert FAILING in page.url
    page.keyboard.press("Escape")
    page.wait_for_selector("tr[data-uid]")
    assert page.evaluate("document.activeElement.textContent") == FAILING


def test_the_next_bad_pod_is_one_key_away(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "stations")
    page.keyboard.press("!")
    page.wait_for_selector("#why .say p")
    assert "pod/shop/" in page.url


def test_the_table_is_one_stop_of_the_tab_key(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "pods")
    page.wait_for_selector("tr[data-uid]")
    assert page.locator("tr[data-uid] a[tabindex='0']").count() == 1


def test_a_change_of_state_reaches_another_tab_within_a_second(world: World, open_page: OpenPage) -> None:
    page = open_page(world, "pods")
    row = page.locator("tr", has_text="postgres-0")
    row.wait_for()
    world.change("data/postgres-0", status=PodStatus(phase="Pending"))
    page.wait_for_function(
        "() => document.querySelector(\"tr[data-uid='uid-data-postgres-0']\").dataset.s !== 'fine'", timeout=1500
    )
