"""The error of a start that failed, in words that name its cause: the port and who holds it, the folder, the disk."""

from __future__ import annotations

import errno
import os
import re
import ssl
from typing import Final

from glasslet.host.machine import out_of_inodes
from glasslet.host.processes import listeners

_PORT: Final = re.compile(r"(?:\('|listen on )(?P<address>\[?[^'\s]*?\]?)(?:', |:)(?P<port>\d+)")


def start_failure(error: BaseException) -> str:
    """One line: the cause first."""
    if isinstance(error, BaseExceptionGroup) and error.exceptions:
        return start_failure(error.exceptions[0])
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, ssl.SSLError):
        return f"a certificate or private key cannot be used: {error.reason or text}"
    if not isinstance(error, OSError):
        return text
    if error.errno == errno.EADDRINUSE and (found := _PORT.search(text)) is not None:
        holders = ", ".join(str(process) for process in listeners(int(found["port"])) if process.pid != os.getpid())
        by = f" by {holders}" if holders else ""
        return f"port {found['port']} of {found['address'] or 'every address'} is in use{by}"
    if error.errno == errno.EADDRNOTAVAIL and (found := _PORT.search(text)) is not None:
        return f"no interface of this machine has the address {found['address']} (port {found['port']})"
    place = f" ({error.filename})" if error.filename else ""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            if error.filename and out_of_inodes(str(error.filename)):
                return f"no inode is left on the disk{place}, though bytes are free: {os.strerror(error.errno)}"
            return f"no space is left on the disk{place}: {os.strerror(error.errno)}"
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return f"a file or folder cannot be written{place}: {os.strerror(error.errno)}"
        case errno.ENOTDIR | errno.EEXIST | errno.EISDIR:
            return f"a folder of the agent is in the way of something else{place}: {os.strerror(error.errno)}"
        case _:
            return text
