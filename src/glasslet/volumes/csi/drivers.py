"""CSI drivers that are registered on this node. In memory: after a restart of the agent they are found by their
sockets."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from msgspec import Struct

_VERSION = re.compile(r"v?(?P<numbers>[0-9]{1,9}(?:\.[0-9]{1,9}){0,3})")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""CSI specification, GetPluginInfo: domain name notation, at most 63 characters."""

Version = tuple[int, ...]


class DriverMissing(Exception):
    """No driver of that name is registered; the text is upstream's."""


class RegisteredDriver(Struct, frozen=True, kw_only=True):
    """One driver. `endpoint`: its socket."""

    name: str
    endpoint: str
    version: Version


class Drivers:
    """Those of the node by name. One socket per name counts."""

    def __init__(self) -> None:
        self._by_name: dict[str, RegisteredDriver] = {}

    def all(self) -> tuple[RegisteredDriver, ...]:
        """By name."""
        return tuple(self._by_name[name] for name in sorted(self._by_name))

    def get(self, name: str) -> RegisteredDriver:
        """Raises DriverMissing."""
        if not name:
            raise DriverMissing("driver name is empty")
        if name not in self._by_name:
            raise DriverMissing(f"driver name {name} not found in the list of registered CSI drivers")
        return self._by_name[name]

    def problem(self, name: str, versions: Collection[str]) -> str:
        """Why such a driver cannot register now; "" if it can."""
        if not _NAME.fullmatch(name):
            return f"driver name {name!r} is not valid: want at most 63 letters, digits, '.', '_' and '-'"
        if not versions:
            return (
                f'RegisterPlugin for CSI driver "{name}" failed. Plugin returned an empty list for supported versions'
            )
        found = highest_version(versions)
        if found is None:
            said = json.dumps(list(versions)).replace(", ", " ")
            return (
                f'RegisterPlugin for CSI driver "{name}" failed. None of the versions specified {said} are supported. '
                "err=want a version 1.x"
            )
        known = self._by_name.get(name)
        if known is not None and known.version >= found:
            shown = ".".join(map(str, known.version))
            return (
                f'RegisterPlugin for CSI driver "{name}" failed. Another driver with the same name is already '
                f'registered with a higher supported version: "{shown}"'
            )
        return ""

    def add(self, driver: RegisteredDriver) -> None:
        """From now on this one has the name."""
        self._by_name[driver.name] = driver

    def remove(self, name: str, endpoint: str) -> bool:
        """The driver at that socket is gone. Returns whether it had the name: a newer one keeps it."""
        known = self._by_name.get(name)
        if known is None or known.endpoint != endpoint:
            return False
        del self._by_name[name]
        return True


def highest_version(versions: Collection[str]) -> Version | None:
    """The highest version 1.x; None if there is none."""
    found = (_VERSION.fullmatch(text) for text in versions)
    numbers = [tuple(int(part) for part in match["numbers"].split(".")) for match in found if match is not None]
    return max((version for version in numbers if version[0] == 1), default=None)
