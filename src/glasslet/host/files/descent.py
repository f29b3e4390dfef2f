"""Opening what is below an open directory: never through a symbolic link, never across a mount point.

openat2(2) checks this in the kernel (Linux 5.6). Where it is missing, or a seccomp profile refuses it, the mount ids of
both descriptors are compared (`mnt_id` in /proc/self/fdinfo). A device number alone says too little: a bind mount has
the device of its file system.
"""

from __future__ import annotations

import errno
import os
import stat

from glasslet.host.mounts.libc import call_openat2

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ITSELF = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_RESOLVE_NO_XDEV = 0x01
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_NOT_AVAILABLE = (errno.ENOSYS, errno.EPERM)
_FDINFO_BYTES = 4096


class MountInside(OSError):
    """Something is mounted there, so it is not entered or opened."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.EXDEV, "another file system is mounted here", name)


def open_directory_below(parent: int, name: str) -> int:
    """A descriptor of the directory `name` in the open directory `parent`. Raises MountInside, NotADirectoryError (or
    ELOOP) for a link, OSError for the rest."""
    return _open(parent, name, _FLAGS)


def open_itself_below(parent: int, name: str) -> int:
    """A descriptor (O_PATH) of whatever is `name` in the open directory `parent`, a link itself and not what it points
    to. Raises MountInside, OSError."""
    return _open(parent, name, _ITSELF)


def _open(parent: int, name: str, flags: int) -> int:
    try:
        return open_by_kernel(parent, name, flags)
    except OSError as error:
        if error.errno not in _NOT_AVAILABLE:
            raise
    return open_and_compare(parent, name, flags)


def open_by_kernel(parent: int, name: str, flags: int = _FLAGS) -> int:
    """The same by openat2(2) alone. Raises ENOSYS where the kernel lacks it."""
    try:
        return call_openat2(parent, name, flags=flags, resolve=_RESOLVE_NO_XDEV | _RESOLVE_NO_SYMLINKS)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise MountInside(name) from None
        raise


def open_and_compare(parent: int, name: str, flags: int = _FLAGS) -> int:
    """The same for older kernels."""
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        if _mount_id(descriptor) != _mount_id(parent):
            raise MountInside(name)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _mount_id(descriptor: int) -> bytes:
    information = os.open(f"/proc/self/fdinfo/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(information, _FDINFO_BYTES)
    finally:
        os.close(information)
    for line in text.split(b"\n"):
        if line.startswith(b"mnt_id:"):
            return line
    raise OSError(errno.ENOTSUP, "the kernel does not say on which mount a directory is")


def open_regular_inside(folder: str, name: str) -> int:
    """A descriptor for reading the regular file `name` below a folder. Links are followed while they stay inside, mount
    points are entered. Raises OSError: EXDEV for what leads out, EINVAL for what is no file. A pipe without a writer is
    not waited for."""
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor = _open_inside(parent, name, folder)
    finally:
        os.close(parent)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", name)


def _open_inside(parent: int, name: str, folder: str) -> int:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return call_openat2(parent, name, flags=flags, resolve=_RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    except OSError as error:
        if error.errno not in _NOT_AVAILABLE:
            raise
    whole = os.path.realpath(folder)
    found = os.path.realpath(os.path.join(whole, name))
    if not found.startswith(f"{whole}/"):
        raise OSError(errno.EXDEV, "outside of the folder", name)
    return os.open(found, flags | os.O_NOFOLLOW)
