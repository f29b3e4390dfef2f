"""hostPath: a file or directory of the node, shown as it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import partial

from glasslet.api.volume import HostPathVolumeSource
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.small_files import make_directory
from glasslet.host.threads import Threads
from glasslet.volumes.plugin import NO_OPTIONS, REMOTE, WAIT_SECONDS, VolumeProblem, VolumeRequest, volume_key

_FILE_MODE = 0o644
_KINDS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "directory"),
    "File": (stat.S_ISREG, "file"),
    "Socket": (stat.S_ISSOCK, "socket file"),
    "CharDevice": (stat.S_ISCHR, "character device"),
    "BlockDevice": (stat.S_ISBLK, "block device"),
}
_OR_CREATE = "OrCreate"


class HostPath:
    """The plugin. It keeps nothing on disk, so tear-down does nothing."""

    name = "kubernetes.io/host-path"
    local = False

    def __init__(self, *, threads: Threads) -> None:
        self._threads = threads

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Checks the path against its type, and makes it where the type says so. Raises VolumeProblem, OSError."""
        source = request.volume.host_path or HostPathVolumeSource()
        name, path = request.name, source.path
        if request.mount_options:
            raise VolumeProblem(NO_OPTIONS, step="MountOptionSupport check")
        if ".." in path.split("/"):
            raise VolumeProblem(f"invalid HostPath `{path}`: must not contain '..'")
        if not path.startswith("/"):
            raise VolumeProblem(f"invalid HostPath `{path}`: must be an absolute path")
        if source.type:
            # The path may lie on a network file system that does not answer.
            await self._threads.run(
                partial(check_type, path, source.type),
                on=f"volume {name}: check {path}",
                key=volume_key(request.pod.metadata.uid, name),
                within=WAIT_SECONDS,
                place=REMOTE,
            )
        return MountedVolume(name=request.volume.name, path=path, read_only=request.read_only)

    async def tear_down(self, uid: str, volume: str) -> None:
        """The node's files stay."""


def check_type(path: str, kind: str) -> None:
    """Raises VolumeProblem if what is at `path` (links followed) is not of that kind; makes what may be made."""
    base = kind.removesuffix(_OR_CREATE)
    if base not in _KINDS or (base != kind and base not in ("Directory", "File")):
        raise VolumeProblem(f"{kind} is an invalid volume type")
    fits, noun = _KINDS[base]
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if base == kind:
            raise VolumeProblem(f"hostPath type check failed: {path} is not a {noun}") from None
        _make(path, base)
        return
    except OSError as error:
        raise VolumeProblem(f"hostPath type check failed: {path} is not a {noun}") from error
    if not fits(mode):
        raise VolumeProblem(f"hostPath type check failed: {path} is not a {noun}")


def _make(path: str, base: str) -> None:
    if base == "Directory":
        make_directory(path, 0o755)
    else:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
        except FileExistsError:
            # Made in between: it keeps its mode.
            return
        try:
            # A container reads it, whatever the agent's umask.
            os.fchmod(descriptor, _FILE_MODE)
        finally:
            os.close(descriptor)
