"""Log directories of unknown pods, and links to removed logs. All methods block on the disk."""

from __future__ import annotations

import logging
import os

from glasslet.api.object import ContainerID, PodUID
from glasslet.host.files.layout import LogLayout
from glasslet.host.files.removal import remove_tree
from glasslet.host.mounts.table import read_mount_table

logger = logging.getLogger(__name__)

_SHORTEST_ID = 6


class LogFolders:
    """The entries of podLogsDir and /var/log/containers. Names that are not `<namespace>_<pod>_<uid>` are ignored."""

    def __init__(self, layout: LogLayout) -> None:
        self._layout = layout

    def uids(self) -> frozenset[PodUID]:
        """Pods that have a log directory."""
        found = (uid_of_folder(name) for name in _listed(self._layout.pod_logs_dir))
        return frozenset(uid for uid in found if uid is not None)

    def remove(self, uids: frozenset[PodUID]) -> tuple[str, ...]:
        """Removes the directories of these pods; returns their names. A failure is logged and tried again next time."""
        removed = []
        for name in _listed(self._layout.pod_logs_dir):
            if uid_of_folder(name) not in uids:
                continue
            path = f"{self._layout.pod_logs_dir}/{name}"
            try:
                remove_tree(path, read_mount_table())
            except OSError as error:
                logger.warning("log directory could not be removed", extra={"path": path, "error": str(error)})
            else:
                removed.append(name)
        return tuple(removed)

    def remove_dangling_links(self, alive: frozenset[ContainerID]) -> tuple[str, ...]:
        """Removes dangling links into our log directories; returns their names.

        `alive`: containers that did not exit keep theirs: between the renaming and the reopening of a rotation the log
        is missing for a moment.
        """
        inside = self._layout.pod_logs_dir.rstrip("/") + "/"
        return tuple(name for name in _listed(self._layout.links_dir) if self._remove_dangling(name, inside, alive))

    def _remove_dangling(self, name: str, inside: str, alive: frozenset[ContainerID]) -> bool:
        path = f"{self._layout.links_dir}/{name}"
        if not name.endswith(".log") or container_of_link(name) in alive:
            return False
        try:
            if not os.path.islink(path) or os.path.exists(path) or not os.readlink(path).startswith(inside):
                return False
            os.unlink(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            logger.warning("log link could not be removed", extra={"path": path, "error": str(error)})
            return False
        return True


def uid_of_folder(name: str) -> PodUID | None:
    """`<namespace>_<pod>_<uid>` -> uid; None for other names (neither of the three parts can hold an underscore)."""
    parts = name.split("_")
    return PodUID(parts[2]) if len(parts) == 3 and all(parts) else None


def container_of_link(name: str) -> ContainerID | None:
    """`<pod>_<namespace>_<container>-<id>.log` -> id; None where there is none that could be one."""
    found = name.removesuffix(".log").rpartition("-")[2]
    return ContainerID(found) if len(found) >= _SHORTEST_ID else None


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
    except OSError as error:
        logger.warning("directory could not be listed", extra={"path": directory, "error": str(error)})
        return []
