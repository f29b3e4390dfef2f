"""Names of huge page sizes. Pure."""

from __future__ import annotations

from glasslet.api.quantity import Quantity

PREFIX = "hugepages-"
UNLIMITED_BYTES = 2**62
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def page_size(resource: str) -> int:
    """Bytes of a `hugepages-<size>` resource, 0 for any other."""
    if not resource.startswith(PREFIX):
        return 0
    try:
        return Quantity.parse(resource.removeprefix(PREFIX)).value()
    except ValueError:
        return 0


def page_size_name(size: int) -> str:
    """A page size in bytes as the kernel's cgroup files name it: `2MB`, `1GB`."""
    unit = 0
    while size and size % 1024 == 0 and unit + 1 < len(_UNITS):
        size //= 1024
        unit += 1
    return f"{size}{_UNITS[unit]}"
