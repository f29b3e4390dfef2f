"""The page under /glass/: its files, and its live stream. All its addresses are relative, so that it also works below
`kubectl proxy` and behind `glasslet web`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from aiohttp import web

from glasslet.glass.handlers import GlassHandlers, answering
from glasslet.glass.page.files import PageFiles
from glasslet.glass.page.source import PageSource
from glasslet.glass.source import GlassSource
from glasslet.record.store import Record

if TYPE_CHECKING:
    from glasslet.glass.page.live import LivePages

FILE = "/glass/{file:[a-z0-9-]+\\.[a-z]+}"


def page_routes(
    glass: GlassHandlers, source: GlassSource, record: Record, page: PageSource, *, logs: str
) -> list[web.RouteDef]:
    """The routes. `logs`: where the page reads logs, as in `PageFacts`."""
    files = PageFiles()

    @cache
    def live() -> LivePages:
        # Loaded with the first page that is opened.
        from glasslet.glass.page.live import LivePages
        from glasslet.glass.page.live_views import LiveParts, LiveViews

        parts = LiveParts(glass=glass, source=source, record=record, page=page, logs=logs)
        return LivePages(view_of=LiveViews(parts), clock=record.clock)

    async def stream(request: web.Request) -> web.StreamResponse:
        return await live().stream(request)

    return [
        web.get("/glass", files.beside),
        web.get("/glass/", files.shell),
        web.get("/glass/live", answering(stream)),
        web.get(FILE, files.file),
    ]
