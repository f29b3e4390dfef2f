"""Reads the runtime's cgroup driver, with retries, and from its settings where it has no verb for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from glasslet.runtime.cri._generated import runtime_pb2
from glasslet.runtime.errors import RuntimeCallError

_TRIES = 3
_RUNC = "io.containerd.runc."


class DriverSource(Protocol):
    """The part of `CRIRuntime` that is used here."""

    async def cgroup_driver(self) -> str | None: ...


async def ask_cgroup_driver(runtime: DriverSource, *, not_implemented: Callable[[], None]) -> str | None:
    """The runtime's driver; None for a runtime that does not report one, after a call of `not_implemented` if it lacks
    that CRI verb. Raises RuntimeCallError after three failures."""
    for left in reversed(range(_TRIES)):
        try:
            return await runtime.cgroup_driver()
        except RuntimeCallError as error:
            if error.code == "UNIMPLEMENTED":
                not_implemented()
                return None
            if not left:
                raise
    raise AssertionError("unreachable")


def driver_in_settings(answer: runtime_pb2.StatusResponse) -> str | None:
    """The driver that containerd's verbose status names for its default runtime, if that is runc; else None."""
    try:
        settings = json.loads(answer.info.get("config", "{}"))
    except (ValueError, RecursionError):
        return None
    runtimes = _at(settings, "containerd", "runtimes")
    default = _at(settings, "containerd", "defaultRuntimeName")
    if not isinstance(default, str) or not str(_at(runtimes, default, "runtimeType")).startswith(_RUNC):
        return None
    return "systemd" if _at(runtimes, default, "options", "SystemdCgroup") is True else "cgroupfs"


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
