"""Mount options of mount(8) as the kernel's flags. Pure."""

from __future__ import annotations

from collections.abc import Iterable

_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_NOATIME, _NODIRATIME, _RELATIME = 1024, 2048, 1 << 21
_ST_RELATIME = 4096

_SETS = {
    "ro": _RDONLY,
    "nosuid": _NOSUID,
    "nodev": _NODEV,
    "noexec": _NOEXEC,
    "noatime": _NOATIME,
    "nodiratime": _NODIRATIME,
    "relatime": _RELATIME,
}
_CLEARS = {
    "rw": _RDONLY,
    "suid": _NOSUID,
    "dev": _NODEV,
    "exec": _NOEXEC,
    "atime": _NOATIME,
    "diratime": _NODIRATIME,
    "norelatime": _RELATIME,
}
_SAME_IN_STATVFS = _RDONLY | _NOSUID | _NODEV | _NOEXEC | _NOATIME | _NODIRATIME


def bind_flags(options: Iterable[str], now: int) -> int | None:
    """Returns the flags of a bind mount with these options, given its present ones (`statvfs`): flags without an option
    are kept, as a remount would drop them. None if no option changes a flag."""
    flags = now & _SAME_IN_STATVFS | (_RELATIME if now & _ST_RELATIME else 0)
    changes = False
    for option in options:
        if option in _SETS:
            flags |= _SETS[option]
            changes = True
        elif option in _CLEARS:
            flags &= ~_CLEARS[option]
            changes = True
    return flags if changes else None


def joined(*groups: Iterable[str]) -> tuple[str, ...]:
    """Options of several sources together, each once, sorted: the order that users see in messages."""
    return tuple(sorted({option for group in groups for option in group if option}))
