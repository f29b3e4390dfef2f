"""Whether this kernel enforces AppArmor profiles."""

from __future__ import annotations

import os


def app_armor_enabled(root: str = "") -> bool:
    """As container runtimes decide it: the module is on, its interface is mounted, and this is not itself a container
    of a container manager that says so. `root`: where the machine's files are found ("" for the real one)."""
    if os.environ.get("container") or not os.path.isdir(f"{root}/sys/kernel/security/apparmor"):  # noqa: SIM112
        return False
    try:
        with open(f"{root}/sys/module/apparmor/parameters/enabled", encoding="ascii") as file:
            return file.read(1) == "Y"
    except (OSError, ValueError):
        return False
