"""System calls that Python has no function for, by ctypes. Each raises OSError with the kernel's code."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

_OPENAT2, _QUOTACTL_FD = 437, 443
"""The calls' numbers: the same on every architecture since all new numbers are."""
_GET_PROJECT_QUOTA = 0x800007 << 8 | 2
"""QCMD(Q_GETQUOTA, PRJQUOTA) of linux/quota.h."""


def call_mount(source: str, target: str, fs_type: str, flags: int, options: str) -> None:
    """mount(2)."""
    answer = _libc().mount(os.fsencode(source), os.fsencode(target), fs_type.encode(), flags, options.encode() or None)
    if answer != 0:
        raise _error(target)


def call_umount(target: str, flags: int) -> None:
    """umount2(2)."""
    if _libc().umount2(os.fsencode(target), flags) != 0:
        raise _error(target)


def call_openat2(parent: int, name: str, *, flags: int, resolve: int) -> int:
    """openat2(2): a descriptor of `name`, resolved below the descriptor `parent`."""
    import ctypes

    how = (ctypes.c_uint64 * 3)(flags, 0, resolve)
    descriptor = int(
        _libc().syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(parent),
            ctypes.c_char_p(os.fsencode(name)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
    )
    if descriptor < 0:
        raise _error(name)
    return descriptor


def call_project_quota(folder: int, project: int, size: int) -> bytes:
    """quotactl_fd(2) with Q_GETQUOTA: struct if_dqblk of a project on the file system of an open folder. Linux 5.14 or
    later; older ones answer ENOSYS."""
    import ctypes

    answer = ctypes.create_string_buffer(size)
    failed = _libc().syscall(
        ctypes.c_long(_QUOTACTL_FD),
        ctypes.c_uint(folder),
        ctypes.c_uint(_GET_PROJECT_QUOTA),
        ctypes.c_uint(project),
        answer,
    )
    if failed:
        raise _error(f"project {project}")
    return answer.raw


@cache
def _libc() -> ctypes.CDLL:
    # Imported late: an agent whose pods mount nothing never needs it.
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    text = ctypes.c_char_p
    libc.mount.argtypes = (text, text, text, ctypes.c_ulong, text)
    libc.umount2.argtypes = (text, ctypes.c_int)
    libc.syscall.restype = ctypes.c_long
    return libc


def _error(path: str) -> OSError:
    import ctypes

    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), path)
