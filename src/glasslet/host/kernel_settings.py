"""The kernel settings that a node has: written at the start where they differ."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from glasslet.config.machine import KERNEL_SETTINGS

LEAVE_MACHINE = "GLASSLET_LEAVE_MACHINE"
"""Environment variable: `true` leaves kernel settings, iptables and the root directory's mount as they are, for an
agent that shares its machine with other work."""


def set_kernel_settings(wanted: Mapping[str, int] = KERNEL_SETTINGS, *, root: str = "/proc/sys") -> Iterator[str]:
    """Writes what differs; gives a text for each setting that cannot be read or written."""
    for name, value in wanted.items():
        path = os.path.join(root, name)
        try:
            with open(path, encoding="ascii") as file:
                found = file.read(100).strip()
            if found != str(value):
                with open(path, "w", encoding="ascii") as file:
                    file.write(str(value))
        except OSError as error:
            yield f"kernel setting {name.replace('/', '.')} is not {value}: {error.strerror}"
        except ValueError as error:
            yield f"kernel setting {name.replace('/', '.')} is not {value}: {error}"
