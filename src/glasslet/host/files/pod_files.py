"""A pod's own directories and files on this node: data directories, /etc/hosts, termination logs, log folders, links.

Small local files are written in place. Work on a whole tree, or on a file that a container can write, is done in a
thread. All methods raise OSError.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Protocol, TypeVar

from glasslet.api.container import Container
from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.concurrency.clock import Clock
from glasslet.host.files.env_files import EnvFile, read_env_values
from glasslet.host.files.hosts_file import node_hosts, pod_hosts
from glasslet.host.files.layout import LogLayout, RootLayout, container_log
from glasslet.host.files.removal import remove_empty, remove_tree
from glasslet.host.files.small_files import make_directory, read_regular, write_in_place
from glasslet.host.files.termination import KEPT_LOGS, EndedInstance, log_name, log_of, read_last_words
from glasslet.host.mounts.table import read_mount_table
from glasslet.host.threads import Threads

T = TypeVar("T")

MAX_NODE_HOSTS = 16 * 1024 * 1024
"""Bytes of the node's hosts file; larger ones are an error of pods on the host's network."""

_PRIVATE = 0o750
_READABLE = 0o755
_ETC_HOSTS = "/etc/hosts"
_OF_PODS = frozenset({"volumes", "plugins", "containers", "volume-subpaths", "volumeDevices", "etc-hosts", "userns"})


class LoggedInstance(Protocol):
    """A container instance whose log is removed (`runtime.model.ObservedContainer`)."""

    @property
    def id(self) -> ContainerID: ...
    @property
    def name(self) -> str: ...
    @property
    def attempt(self) -> int: ...


class PodFiles:
    """Makes and removes files of pods. `hostname` gives a pod's host name and domain (`podspec.hostname`)."""

    def __init__(
        self,
        *,
        root: RootLayout,
        logs: LogLayout,
        hostname: Callable[[Pod], tuple[str, str]],
        threads: Threads,
        clock: Clock,
        node_hosts_file: str = _ETC_HOSTS,
    ) -> None:
        self._root = root
        self._logs = logs
        self._hostname = hostname
        self._threads = threads
        self._clock = clock
        self._node_hosts_file = node_hosts_file

    async def prepare(self, pod: Pod) -> None:
        """Makes the pod's data directories and one log directory per container; may be repeated."""
        uid, ref, spec = pod.metadata.uid, pod_ref(pod), pod.spec
        for path in (self._root.pod(uid), self._root.volumes(uid), self._root.plugins(uid)):
            make_directory(path, _PRIVATE)
        make_directory(self._logs.pod_logs_dir, _PRIVATE)
        make_directory(self._logs.pod(ref), _READABLE)
        names = [c.name for c in (*spec.init_containers, *spec.containers)]
        for name in (*names, *(c.name for c in spec.ephemeral_containers)):
            make_directory(self._logs.container(ref, name), _READABLE)

    async def etc_hosts(self, pod: Pod, ips: tuple[str, ...]) -> str:
        """Writes the pod's hosts file. Returns its path, "" for a pod without an address."""
        if not ips and not pod.spec.host_network:
            return ""
        # In a thread: its containers can write to it, and may have made it large.
        ref = pod_ref(pod)
        return await self._threads.run(lambda: self._write_etc_hosts(pod, ips), on=f"hosts file of {ref} ({ref.uid})")

    async def env_files(
        self, pod: Pod, wanted: Mapping[tuple[str, str], Collection[str]]
    ) -> Mapping[tuple[str, str], EnvFile]:
        """Variables from files in the pod's volumes, each read once. `wanted`: names of variables, by the volume's path
        and the file's path in it."""
        if not wanted:
            return {}
        ref = pod_ref(pod)
        read = {place: partial(read_env_values, *place, keys) for place, keys in wanted.items()}
        # In a thread: containers wrote these files.
        return await self._threads.run(
            lambda: {place: call() for place, call in read.items()}, on=f"environment files of {ref} ({ref.uid})"
        )

    async def termination_log(self, pod: Pod, container: Container) -> str:
        """Makes an empty termination log for the instance that is about to be created. Returns its path, "" if the
        container wants none."""
        if not container.termination_message_path:
            return ""
        directory = self._root.container(pod.metadata.uid, container.name)
        make_directory(directory, _PRIVATE)
        path = f"{directory}/{log_name(self._clock.now())}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        with contextlib.closing(os.fdopen(descriptor, "wb")):
            os.fchmod(descriptor, 0o666)
        _remove_old_logs(directory)
        return path

    async def termination_message(self, pod: Pod, container: Container, instance: EndedInstance) -> str:
        """Returns the termination message of an ended instance, the runtime's words included."""
        log = ""
        if container.termination_message_path:
            directory = self._root.container(pod.metadata.uid, container.name)
            name = _find_log(directory, instance)
            log = f"{directory}/{name}" if name else ""
        return read_last_words(log, container.termination_message_policy, instance)

    def last_attempt(self, ref: PodRef, container: str) -> int | None:
        """Returns the highest attempt that ever had a log here, None without any."""
        try:
            names = os.listdir(self._logs.container(ref, container))
        except FileNotFoundError:
            return None
        numbers = (name.split(".", 1) for name in names)
        return max((int(n[0]) for n in numbers if n[0].isdigit() and n[1:] and n[1].startswith("log")), default=None)

    async def link_log(self, ref: PodRef, container: str, instance: ContainerID, log_path: str) -> None:
        """Links a log for collectors, unless there is no log."""
        if not os.path.exists(log_path):
            return
        make_directory(self._logs.links_dir, _READABLE)
        link = self._logs.link(ref, container, instance)
        try:
            os.symlink(log_path, link)
        except FileExistsError:
            if os.readlink(link) != log_path:
                os.unlink(link)
                os.symlink(log_path, link)

    async def remove_log(self, ref: PodRef, instance: LoggedInstance) -> None:
        """Removes an instance's log with its rotated parts, and its link."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._logs.link(ref, instance.name, instance.id))
        current = f"{self._logs.pod(ref)}/{container_log(instance.name, instance.attempt)}"
        directory, base = os.path.split(current)
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(directory):
                if name == base or name.startswith(f"{base}."):
                    os.unlink(f"{directory}/{name}")

    async def remove(self, ref: PodRef) -> None:
        """Removes the pod's directories and logs. Volumes have to be torn down before: the rest of one stays, and is
        an error that names it."""
        await self._threads.run(lambda: self._remove(ref), on=f"remove directories of {ref} ({ref.uid})")

    def uids_on_disk(self) -> tuple[PodUID, ...]:
        """Returns the pods that have a directory here, known or unknown."""
        try:
            with os.scandir(self._root.pods()) as entries:
                return tuple(PodUID(e.name) for e in entries if e.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return ()

    def whose(self, uid: PodUID) -> PodRef | None:
        """Returns the pod of a folder: its name is known where it has logs, "" otherwise. None for a folder that holds
        nothing of a pod: it is not removed."""
        try:
            inside = set(os.listdir(self._root.pod(uid)))
        except FileNotFoundError:
            return None
        if inside and not inside & _OF_PODS:
            return None
        with contextlib.suppress(FileNotFoundError), os.scandir(self._logs.pod_logs_dir) as folders:
            for folder in folders:
                namespace, name, owner = (*folder.name.split("_"), "", "", "")[:3]
                if owner == uid:
                    return PodRef(namespace, name, uid)
        return PodRef("", "", uid)

    def _write_etc_hosts(self, pod: Pod, ips: tuple[str, ...]) -> str:
        path = self._root.etc_hosts(pod.metadata.uid)
        aliases = pod.spec.host_aliases
        if pod.spec.host_network:
            nodes = read_regular(self._node_hosts_file, most=MAX_NODE_HOSTS, follow=True)
            text = node_hosts(nodes.decode("utf-8", "surrogateescape"), aliases)
        else:
            name, domain = self._hostname(pod)
            text = pod_hosts(ips, name, domain, aliases)
        write_in_place(path, text.encode("utf-8", "surrogateescape"))
        return path

    def _remove(self, ref: PodRef) -> None:
        uid = ref.uid
        table = read_mount_table()
        for path in (self._root.volumes(uid), self._root.sub_paths(uid), self._root.volume_devices(uid)):
            if not remove_empty(path):
                raise OSError(errno.ENOTEMPTY, "data of volumes is still there", path)
        remove_tree(self._root.pod(uid), table)
        remove_tree(self._logs.pod(ref), table)
        self._remove_links(ref)

    def _remove_links(self, ref: PodRef) -> None:
        """Removes links into the pod's log directory, which was removed."""
        inside = self._logs.pod(ref) + "/"
        with contextlib.suppress(FileNotFoundError), os.scandir(self._logs.links_dir) as entries:
            for entry in entries:
                if entry.is_symlink() and os.readlink(entry.path).startswith(inside):
                    os.unlink(entry.path)


def _remove_old_logs(directory: str) -> None:
    """Keeps the newest logs of a container that starts again and again."""
    names = os.listdir(directory)
    if len(names) <= KEPT_LOGS:
        return
    # The time of the last change, which no container can set.
    names.sort(key=lambda name: os.lstat(f"{directory}/{name}").st_ctime_ns)
    for name in names[:-KEPT_LOGS]:
        os.unlink(f"{directory}/{name}")


def _find_log(directory: str, instance: EndedInstance) -> str | None:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return None
    found = log_of(names, instance.created_at)
    if found is not None or not names:
        return found
    # Another kubelet made them, under names that say nothing: take the one written last.
    return max(names, key=lambda name: os.lstat(f"{directory}/{name}").st_mtime_ns)
