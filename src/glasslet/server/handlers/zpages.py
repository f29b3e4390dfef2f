"""`/statusz` and `/flagz`: what runs here since when, and with which flags (gates ComponentStatusz, ComponentFlagz)."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from glasslet.config.flags.table import FLAGS
from glasslet.server import responses
from glasslet.server.routing import Parameters, RouteTable
from glasslet.version import KUBELET_VERSION, KUBERNETES_VERSION

_HEAD = """
kubelet {what}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for \
debugging purposes only.

"""
_CLASSIFIED = {"manifest-url", "manifest-url-header", "storage-driver-password", "storage-driver-user"}
_REFUSED = "media type not acceptable, must be: text/plain"


def add_statusz(routes: RouteTable, *, started: float) -> None:
    """Serves `/statusz`. `started`: wall time in seconds."""

    async def handler(request: web.Request, _: Parameters) -> web.StreamResponse:
        if not accepts_text(request.headers.get("Accept", "")):
            return responses.error(406, _REFUSED)
        return responses.plain(200, statusz(started, time.time()))

    routes.fixed("/statusz", handler)


def add_flagz(routes: RouteTable, flags: Mapping[str, str]) -> None:
    """Serves `/flagz`. `flags`: value by name."""

    async def handler(request: web.Request, _: Parameters) -> web.StreamResponse:
        if not accepts_text(request.headers.get("Accept", "")):
            return responses.error(406, _REFUSED)
        return responses.plain(200, flagz(flags))

    routes.fixed("/flagz", handler)


def statusz(started: float, now: float) -> str:
    """The text of `/statusz`; times in seconds."""
    minutes, seconds = divmod(max(0, int(now - started)), 60)
    hours, minutes = divmod(minutes, 60)
    rows = {
        "Started": datetime.fromtimestamp(started, UTC).strftime("%a %b %e %H:%M:%S UTC %Y"),
        "Up": f"{hours} hr {minutes:02d} min {seconds:02d} sec",
        "Python version": platform.python_version(),
        "Binary version": KUBELET_VERSION.removeprefix("v"),
        "Emulation version": ".".join(KUBERNETES_VERSION.removeprefix("v").split(".")[:2]),
    }
    return _HEAD.format(what="statusz") + "".join(f"{name}: {value}\n" for name, value in rows.items())


def flagz(flags: Mapping[str, str]) -> str:
    """The text of `/flagz`."""
    return _HEAD.format(what="flags") + "".join(f"{name}={flags[name]}\n" for name in sorted(flags))


def flag_values(given: Mapping[str, Any]) -> dict[str, str]:
    """Every flag with its value on the command line, else its default. Those that may hold secrets are CLASSIFIED."""
    values = {name: flag.default for name, flag in FLAGS.items()}
    values |= {name: _text(value) for name, value in given.items()}
    return values | dict.fromkeys(_CLASSIFIED & values.keys(), "CLASSIFIED")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ",".join(f"{key}={_text(entry)}" for key, entry in value.items())
    if isinstance(value, list):
        return ",".join(_text(entry) for entry in value)
    return str(value)


def accepts_text(accept: str) -> bool:
    """Whether an Accept header takes `text/plain` in UTF-8. One that is empty or missing does not."""
    for item in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in item.split(";"))
        given = dict(part.partition("=")[::2] for part in parameters)
        given.pop("q", None)
        if kind in ("text/plain", "*/*") and all(
            name == "charset" and value.strip('"') == "utf-8" for name, value in given.items()
        ):
            return True
    return False
