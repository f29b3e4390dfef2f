"""Places of a pod on disk: the Go kubelet's layout, so that either program finds what the other left.

Every name that goes into a path comes from an API object or from a directory listing and is checked first: a component
that could climb out of its parent is refused.
"""

from __future__ import annotations

import errno

from msgspec import Struct

from glasslet.api.pod_ref import PodRef

MAX_FILE_NAME = 255


class UnsafePath(OSError):
    """A name cannot be one component of a path. An OSError, because users of paths expect those anyway."""

    def __init__(self, problem: str) -> None:
        super().__init__(errno.EINVAL, problem)
        self.problem = problem


def component(name: str, what: str) -> str:
    """`name`, if it is exactly one path component. Raises UnsafePath naming what it is."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise UnsafePath(f"{what} {name!r} cannot be a file name: want one path element that is not empty, '.' or '..'")
    if len(name.encode()) > MAX_FILE_NAME:
        raise UnsafePath(f"{what} {name[:32]!r}... cannot be a file name: longer than {MAX_FILE_NAME} bytes")
    return name


class RootLayout(Struct, frozen=True):
    """Paths below `--root-dir`."""

    root_dir: str = "/var/lib/kubelet"

    def pods(self) -> str:
        """The directory of all pods."""
        return f"{self.root_dir}/pods"

    def pod(self, uid: str) -> str:
        """One pod's directory."""
        return f"{self.root_dir}/pods/{component(uid, 'pod uid')}"

    def volumes(self, uid: str) -> str:
        """Parent of `<plugin>/<volume>`."""
        return f"{self.pod(uid)}/volumes"

    def volume(self, uid: str, plugin: str, name: str) -> str:
        """One mounted volume. `plugin` as in `kubernetes.io/empty-dir`."""
        return f"{self.pod(uid)}/volumes/{escaped(plugin)}/{component(name, 'volume name')}"

    def volume_devices(self, uid: str) -> str:
        """Parent of `<plugin>/<volume>`, links to disks that containers get as they are."""
        return f"{self.pod(uid)}/volumeDevices"

    def volume_device(self, uid: str, plugin: str, name: str) -> str:
        """One such link."""
        return f"{self.volume_devices(uid)}/{escaped(plugin)}/{component(name, 'volume name')}"

    def plugins(self, uid: str) -> str:
        """Parent of the notes of volume plugins about a pod's volumes."""
        return f"{self.pod(uid)}/plugins"

    def volume_notes(self, uid: str, plugin: str, name: str) -> str:
        """A plugin's marks about one volume (`ready`)."""
        return f"{self.pod(uid)}/plugins/{escaped(plugin)}/{component(name, 'volume name')}"

    def shared_mount(self, plugin: str, name: str) -> str:
        """The mount of a disk, one for all pods. `plugin` as in `kubernetes.io/local-volume`."""
        return f"{self.root_dir}/plugins/{plugin}/mounts/{component(name, 'volume name')}"

    def sub_paths(self, uid: str) -> str:
        """Parent of `<volume>/<container>/<index>`, the bind mounts of volumeMounts with subPath."""
        return f"{self.pod(uid)}/volume-subpaths"

    def sub_path(self, uid: str, volume: str, container: str, index: int) -> str:
        """The bind mount of one volumeMount; `index` is its position in the container."""
        names = f"{component(volume, 'volume name')}/{component(container, 'container name')}"
        return f"{self.pod(uid)}/volume-subpaths/{names}/{index:d}"

    def containers(self, uid: str) -> str:
        """Parent of the containers' own directories."""
        return f"{self.pod(uid)}/containers"

    def container(self, uid: str, container: str) -> str:
        """A container's directory: its termination logs."""
        return f"{self.pod(uid)}/containers/{component(container, 'container name')}"

    def etc_hosts(self, uid: str) -> str:
        """The hosts file of a pod."""
        return f"{self.pod(uid)}/etc-hosts"

    def user_namespace(self, uid: str) -> str:
        """The file with the pod's ids, for a pod with a user namespace."""
        return f"{self.pod(uid)}/userns"


class LogLayout(Struct, frozen=True):
    """Paths of container logs. Sources: behaviours of podLogsDir and of /var/log/containers."""

    pod_logs_dir: str = "/var/log/pods"
    links_dir: str = "/var/log/containers"

    def pod(self, ref: PodRef) -> str:
        """`<namespace>_<pod>_<uid>`; static pods have the config hash as uid."""
        return f"{self.pod_logs_dir}/{component(f'{ref.namespace}_{ref.name}_{ref.uid}', 'pod log directory')}"

    def container(self, ref: PodRef, container: str) -> str:
        """Directory of one container's logs."""
        return f"{self.pod(ref)}/{component(container, 'container name')}"

    def link(self, ref: PodRef, container: str, container_id: str) -> str:
        """The link that log collectors follow. A name too long is cut so that id and suffix survive."""
        tail = f"-{component(container_id, 'container id')}.log"
        head = f"{ref.name}_{ref.namespace}_{container}"
        name = component(f"{head[: MAX_FILE_NAME - len(tail)]}{tail}", "container log link")
        return f"{self.links_dir}/{name}"


def container_log(container: str, attempt: int) -> str:
    """A container's log, relative to its pod's log directory (CRI `log_path`)."""
    return f"{component(container, 'container name')}/{attempt:d}.log"


def escaped(plugin: str) -> str:
    """A plugin's name as directory name: `kubernetes.io/empty-dir` is `kubernetes.io~empty-dir`."""
    return component(plugin.replace("/", "~"), "volume plugin")
