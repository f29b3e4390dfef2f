"""Where the node's changing facts are read: addresses, the root directory's file system, huge pages. May block."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from glasslet.host.machine import capacity_of, look_up_node_ips, resolve_name
from glasslet.node.settings import NodeSettings

_HUGE_PAGES = re.compile(r"hugepages-([0-9]+)kB")


class HostProbe:
    """Reads the machine; every call may hang and belongs into a thread."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        root_dir: str,
        system: str = "",
        resolve: Callable[[str], tuple[str, ...]] = resolve_name,
    ) -> None:
        """`system`: where the machine's /sys is found ("" for the real one)."""
        self._settings = settings
        self._root_dir = root_dir
        self._system = system
        self._resolve = resolve

    def addresses(self) -> tuple[str, ...]:
        """The node's IP addresses. Raises NodeAddressUnknown, OSError."""
        return look_up_node_ips(self._settings.name, self._settings.node_ips, self._resolve)

    def storage(self) -> int:
        """Bytes of the file system of the root directory. Raises OSError."""
        return capacity_of(self._root_dir)

    def hugepages(self) -> dict[int, int]:
        """Page size -> bytes in reserved pages of that size; sizes without pages are there, too."""
        folder = Path(f"{self._system}/sys/kernel/mm/hugepages")
        found = {}
        for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
            match = _HUGE_PAGES.fullmatch(entry.name)
            if match:
                size = int(match[1]) * 1024
                found[size] = size * _number(entry / "nr_hugepages")
        return found


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
