"""SELinux labels by a mount option: one `context=` in place of a label on each file. Pure.

Source: KEP-1710. A volume has one label, so all containers that use it, and all pods of the node, have to agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.persistent_volume import READ_WRITE_ONCE_POD
from glasslet.api.pod import Pod
from glasslet.api.security import SELinuxOptions
from glasslet.api.storage import CSIDriver
from glasslet.volumes.csi.errors import NotTried

_RECURSIVE: Final = "Recursive"
_USER, _LEVEL = 0, 3
"""Parts of a label, which are user, role, type and level."""


class LabelledMounts(Struct, frozen=True, kw_only=True):
    """Which volumes are mounted with a label. `file`: the label of containers' files on this node, "" where SELinux is
    off; `one_pod`: gate SELinuxMountReadWriteOncePod; `all_modes`: gate SELinuxMount; `by_policy`: gate
    SELinuxChangePolicy."""

    file: str = ""
    one_pod: bool = False
    all_modes: bool = False
    by_policy: bool = False

    def label(self, pod: Pod, volume: str, modes: tuple[str, ...], driver: CSIDriver | None) -> str:
        """The label to mount the pod's `volume` with, "" for none. `modes`: those of its PersistentVolume. Raises
        NotTried for containers that do not agree."""
        if not self.file or not self.one_pod or driver is None or not driver.spec.se_linux_mount:
            return ""
        if not self.all_modes and modes != (READ_WRITE_ONCE_POD,):
            return ""
        context = pod.spec.security_context
        if self.by_policy and context is not None and context.se_linux_change_policy == _RECURSIVE:
            return ""
        found = sorted({file_label(_options(one, pod), self.file) for one in _users(pod, volume)})
        if len(found) > 1:
            raise NotTried(f"multiple SELinux labels found: {','.join(found)}", step="MountDevice")
        return found[0] if found else ""


def file_label(options: SELinuxOptions | None, file: str) -> str:
    """The label of files that a process with these options may use, "" if nothing is said. Role and type of files are
    the system's, whatever those of the process are."""
    if options is None or not any((options.user, options.role, options.type, options.level)):
        return ""
    parts = file.split(":", _LEVEL)
    parts += [""] * (_LEVEL + 1 - len(parts))
    parts[_USER] = options.user or parts[_USER]
    parts[_LEVEL] = options.level or parts[_LEVEL]
    return ":".join(part for part in parts if part)


def mount_option(label: str) -> str:
    """As mount(8) takes it. A level has commas, so it is quoted."""
    return f'context="{label}"'


def conflict(volume: str) -> NotTried:
    """Another pod of the node has the volume with another label."""
    return NotTried(
        f'waiting for unmount of volume "{volume}", because it is already mounted to a different pod with a different '
        "SELinux label",
        step="MountDevice",
    )


def _users(pod: Pod, volume: str) -> Iterable[Container]:
    for one in (*pod.spec.init_containers, *pod.spec.containers):
        if any(mount.name == volume for mount in one.volume_mounts):
            yield one


def _options(container: Container, pod: Pod) -> SELinuxOptions | None:
    own = container.security_context
    if own is not None and own.se_linux_options is not None:
        return own.se_linux_options
    context = pod.spec.security_context
    return context.se_linux_options if context is not None else None
