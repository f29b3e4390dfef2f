"""Environment variables from a file that an init container wrote into a volume (gate EnvFiles, KEP-3721).

The volume is the pod's: the file may be a link, a pipe, or as large as the disk. Links are followed inside the volume
only, and nothing but a regular file of a moderate size is read.
"""

from __future__ import annotations

import os
import stat

from glasslet.host.mounts.sub_path import open_existing_inside

MAX_FILE = 1024 * 1024
"""Bytes; some thousand variables of ordinary size."""


class EnvFileUnusable(Exception):
    """The file cannot be read or understood; the text says what is wrong and never quotes it."""


def read_env_file(volume: str, path: str) -> str:
    """The file's text. Raises EnvFileUnusable."""
    try:
        with open_existing_inside(volume, path) as descriptor:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise EnvFileUnusable("it is not a regular file")
            if found.st_size > MAX_FILE:
                raise EnvFileUnusable(f"it is larger than {MAX_FILE} bytes")
            with open(f"/proc/self/fd/{descriptor}", "rb") as file:
                return file.read(MAX_FILE).decode()
    except UnicodeDecodeError:
        # Without its cause: the error would hold the content.
        raise EnvFileUnusable("it is not UTF-8 text") from None
    except OSError as error:
        raise EnvFileUnusable(error.strerror or "it cannot be read") from error


def value_in(text: str, key: str) -> str | None:
    """The value of a variable in lines `NAME=value`; None if there is none of that name.

    Blank lines and lines that begin with # are passed over; a backslash at the end joins the next line with a blank.
    Only what stands before the variable has to be well-formed. Raises EnvFileUnusable with the number of the line.
    """
    begun: str | None = None
    for number, raw in enumerate(text.removesuffix("\n").split("\n"), 1):
        line = raw.removesuffix("\r").strip(" \t")
        if not line or line.startswith("#"):
            if begun is not None:
                what = "comment" if line else "blank line"
                raise EnvFileUnusable(f"invalid environment variable format at line {number}: {what} in continuation")
            continue
        if begun is not None:
            line = f"{begun} {line}"
        if line.endswith("\\"):
            begun = line[:-1].rstrip(" \t")
            continue
        begun = None
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise EnvFileUnusable(f"invalid environment variable format at line {number}")
        if name.strip() == key:
            return value.strip()
    if begun is not None:
        raise EnvFileUnusable("unexpected end of file: unfinished line continuation")
    return None
