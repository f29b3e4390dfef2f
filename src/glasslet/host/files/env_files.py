"""Environment variables from a file that an init container wrote into a volume (gate EnvFiles, KEP-3721).

The volume is the pod's: the file may be a link, a pipe, or as large as the disk. Links are followed inside the volume
only, and nothing but a regular file of a moderate size is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping

from msgspec import Struct

from glasslet.host.files.small_files import FileTooLarge, read_regular
from glasslet.host.mounts.sub_path import open_existing_inside

MAX_FILE = 1024 * 1024
"""Bytes; some thousand variables of ordinary size."""

_INVALID = "invalid environment variable format"


class EnvFileUnusable(Exception):
    """The file cannot be read or understood; the text says what is wrong and never quotes it."""


class EnvFile(Struct, frozen=True):
    """Variables of one file. `problem`: why it is not usable from some line on, "" if it is. `repr` shows no value."""

    values: Mapping[str, str] = {}
    problem: str = ""

    def value(self, key: str) -> str | None:
        """The value of a variable, None if the file has none of that name. Raises EnvFileUnusable."""
        if key not in self.values and self.problem:
            raise EnvFileUnusable(self.problem)
        return self.values.get(key)

    def __repr__(self) -> str:
        return f"EnvFile({len(self.values)} values, {self.problem!r})"


def read_env_file(volume: str, path: str) -> str:
    """The file's text. Raises EnvFileUnusable."""
    try:
        with open_existing_inside(volume, path) as descriptor:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise EnvFileUnusable("it is not a regular file")
            return read_regular(f"/proc/self/fd/{descriptor}", most=MAX_FILE, follow=True).decode()
    except FileTooLarge:
        raise EnvFileUnusable(f"it is larger than {MAX_FILE} bytes") from None
    except UnicodeDecodeError:
        # Without its cause: the error would hold the content.
        raise EnvFileUnusable("it is not UTF-8 text") from None
    except OSError as error:
        raise EnvFileUnusable(error.strerror or "it cannot be read") from error


def parse_env_file(text: str, keys: Collection[str]) -> EnvFile:
    """The values of these variables in lines `NAME=value`; the first line of a name counts.

    Blank lines and lines that begin with # are skipped; a backslash at the end joins the next line with a blank. Only
    the lines before a variable have to be well-formed: `problem` names the first that is not.
    """
    values: dict[str, str] = {}
    begun: list[str] = []
    for number, raw in enumerate(text.removesuffix("\n").split("\n"), 1):
        line = raw.removesuffix("\r").strip(" \t")
        if not line or line.startswith("#"):
            if begun:
                what = "comment" if line else "blank line"
                return EnvFile(values, f"{_INVALID} at line {number}: {what} in continuation")
            continue
        if line.endswith("\\"):
            begun.append(line[:-1].rstrip(" \t"))
            continue
        # Joined at the end only: half a million lines may be one variable.
        line = " ".join((*begun, line))
        begun = []
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            return EnvFile(values, f"{_INVALID} at line {number}")
        if (name := name.strip()) in keys:
            values.setdefault(name, value.strip())
    return EnvFile(values, "unexpected end of file: unfinished line continuation" if begun else "")


def read_env_values(volume: str, path: str, keys: Collection[str]) -> EnvFile:
    """`parse_env_file` of a file in a volume; one that cannot be read has only a `problem`. Blocks."""
    try:
        return parse_env_file(read_env_file(volume, path), keys)
    except EnvFileUnusable as error:
        return EnvFile({}, str(error))
