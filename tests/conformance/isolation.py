"""A node of its own on a machine that has other work: namespaces for network, mounts, processes and cgroups.

Outside (`Host`): an own cgroup in every hierarchy and the places that a kubelet insists on, all taken away again.
Inside (`furnish`): those places are own folders, `/sys/fs/cgroup` shows the own cgroup as its root, the network is one
pair of virtual interfaces that leads nowhere.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

NODE_IP = "198.18.0.2"
CGROUPS = Path("/sys/fs/cgroup")
TMP = Path("/tmp")
SYSTEM = "system"
"""The cgroup of all that is neither the runtime, the agent nor a pod."""
PLACES = ("/var/lib/kubelet", "/var/log/pods", "/var/log/containers", "/var/lib/cni", "/run/containerd", "/run/netns")
"""Fixed paths of a node, which other containers of this machine may use too."""


@dataclass(frozen=True)
class Hierarchy:
    """One mounted tree of cgroups: where it is mounted below `/sys/fs/cgroup` ("" for the unified one there), the kind
    of file system and the mount options that make it."""

    place: str
    kind: str
    options: str


def hierarchies(mounts: str) -> tuple[Hierarchy, ...]:
    """Those of a text as in /proc/self/mounts. On a machine with v1 hierarchies the unified one holds no controller
    and is left out."""
    found = []
    for line in mounts.splitlines():
        _, place, kind, options = line.split()[:4]
        if kind == "cgroup" and place.startswith(f"{CGROUPS}/"):
            kept = [one for one in options.split(",") if one not in ("rw", "relatime", "nosuid", "nodev", "noexec")]
            named = any(one.startswith("name=") for one in kept)
            kept = (["none"] if named else []) + [one for one in kept if not one.startswith("release_agent")]
            found.append(Hierarchy(place.removeprefix(f"{CGROUPS}/"), kind, ",".join(kept)))
        elif kind == "cgroup2" and place == str(CGROUPS):
            found.append(Hierarchy("", kind, ""))
    return tuple(found)


class Host:
    """What a run leaves outside of its namespaces while it lasts. A context: nothing is left after it."""

    def __init__(self) -> None:
        self._name = f"glasslet-conformance-{os.getpid()}"
        self._trees = hierarchies(Path("/proc/self/mounts").read_text())
        self._made: list[Path] = []

    def __enter__(self) -> Host:
        for place in PLACES:
            missing = [path for path in (Path(place), *Path(place).parents) if not path.exists()]
            Path(place).mkdir(parents=True, exist_ok=True)
            self._made += missing
        for root in self._roots():
            root.mkdir()
            # New v1 cpuset groups have no CPUs of their own; a copy of the parent's lets processes enter.
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (root / file).exists() and (root.parent / "cgroup.clone_children").exists():
                    (root / file).write_text((root.parent / file).read_text())
            if (root / "cgroup.clone_children").exists():
                (root / "cgroup.clone_children").write_text("1")
            (root / SYSTEM).mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        for root in self._roots():
            _remove_cgroup(root)
        for path in self._made:
            with contextlib.suppress(OSError):  # somebody put something there meanwhile
                path.rmdir()

    def run(self, command: Sequence[str]) -> int:
        """Runs a command in new namespaces; its exit code. Nothing that it started lives on."""
        # The namespace has the own cgroup as its root. On v2 nobody may stay there, or it hands out no controllers. On
        # v1 somebody has to have been there: a group counts only its own page faults; the suite looks at the root's.
        tops = [str(root / "cgroup.procs") for root in self._roots()]
        inner = [str(CGROUPS / self._name / SYSTEM / "cgroup.procs") for tree in self._trees if not tree.place]
        apart = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "slave")
        # A shell is the first process: it reaps what others leave behind.
        first = ("bash", "-c", '"$@"; exit $?', "init")
        whole = (*_moved(tops), "unshare", "--cgroup", *_moved(inner), *apart, *first, *command)
        process = subprocess.Popen(whole, start_new_session=True)
        try:
            return process.wait()
        finally:
            process.kill()
            process.wait()

    def _roots(self) -> list[Path]:
        return [CGROUPS / tree.place / self._name for tree in self._trees]


def _moved(files: Sequence[str]) -> tuple[str, ...]:
    """What starts the command after it in the cgroups of these files."""
    enter = 'files=$1; shift; for file in $files; do echo $$ >"$file"; done; exec "$@"'
    return "bash", "-c", enter, "enter", " ".join(files)


def _remove_cgroup(root: Path, seconds: float = 120.0) -> None:
    """Deepest first. Processes in it, of which the end of the namespace has not been noted yet, are waited for."""
    deadline = time.monotonic() + seconds
    while root.exists():
        for folder, _, _ in os.walk(root, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
        if time.monotonic() > deadline:
            raise OSError(f"cgroup {root} is not empty: {(root / 'cgroup.procs').read_text().split()}")
        time.sleep(0.05)


def furnish(folder: Path, kept: Iterable[Path]) -> None:
    """To be called first inside. `folder` takes what the node writes to its fixed places; `kept` stays visible even if
    it is below /tmp."""
    trees = hierarchies(Path("/proc/self/mounts").read_text())
    _run("mount", "-t", "proc", "proc", "/proc")
    _run("umount", "--lazy", "/sys")
    _run("mount", "-t", "sysfs", "sysfs", "/sys")
    if any(tree.place for tree in trees):
        _run("mount", "-t", "tmpfs", "tmpfs", str(CGROUPS))
    for tree in trees:
        place = CGROUPS / tree.place
        place.mkdir(exist_ok=True)
        _run("mount", "-t", tree.kind, *(("-o", tree.options) if tree.options else ()), tree.kind, str(place))
    for place_name in PLACES:
        own = folder / place_name.strip("/").replace("/", "-")
        own.mkdir(parents=True)
        _run("mount", "--bind", str(own), place_name)
    _replace_tmp(folder, kept)
    _run("mount", "--make-rshared", "/")
    enter_cgroup(SYSTEM)
    _connect()


def _replace_tmp(folder: Path, kept: Iterable[Path]) -> None:
    """An own, empty /tmp, of the mode that the suite looks at: its tests write there."""
    own = folder / "tmp"
    own.mkdir()
    own.chmod(0o1777)
    for path in outermost(path for path in kept if TMP in path.parents and path.exists()):
        place = own / path.relative_to(TMP)
        place.mkdir(parents=True)
        _run("mount", "--rbind", str(path), str(place))
    _run("mount", "--rbind", str(own), str(TMP))


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Without those that are inside of others."""
    given = sorted(set(paths))
    return [path for path in given if not any(other in path.parents for other in given)]


def enter_cgroup(name: str) -> None:
    """This process, and what it starts from then on, is in that cgroup below the node's root."""
    for tree in hierarchies(Path("/proc/self/mounts").read_text()):
        group = CGROUPS / tree.place / name
        group.mkdir(exist_ok=True)
        (group / "cgroup.procs").write_text(str(os.getpid()))


@contextlib.contextmanager
def in_cgroup(name: str) -> Iterator[None]:
    """What the body starts is in that cgroup."""
    enter_cgroup(name)
    try:
        yield
    finally:
        enter_cgroup(SYSTEM)


def _connect() -> None:
    """`eth0` with the node's address. Its other end is here too and has no address: nothing leaves."""
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "peer0")
    _run("ip", "address", "add", f"{NODE_IP}/24", "dev", "eth0")
    for number, (device, other) in enumerate((("eth0", "peer0"), ("peer0", "eth0")), start=1):
        _run("ip", "link", "set", device, "up")
        _run("ip", "route", "add", f"198.19.0.{number}", "dev", device, "src", NODE_IP)
        hardware = Path(f"/sys/class/net/{other}/address").read_text().strip()
        neighbour = (f"198.19.0.{number}", "lladdr", hardware, "dev", device, "nud", "permanent")
        _run("ip", "neighbour", "add", *neighbour)
    _run("ip", "route", "add", "unreachable", "default")
    # The suite wants an interface that has seen a megabyte in each direction.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in (1, 2):
            for _ in range(1200):
                with contextlib.suppress(OSError):  # a full queue drops a few of them
                    sender.sendto(bytes(1400), (f"198.19.0.{number}", 9))


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def remove(folder: Path) -> None:
    """A run's folder; mounts in it went with the namespaces."""
    shutil.rmtree(folder, ignore_errors=True)
