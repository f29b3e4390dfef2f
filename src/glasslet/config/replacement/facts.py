"""The set-up of a node that the Go kubelet runs on: read once, changing nothing. What is not there is empty."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from glasslet.config.files import FileProblem, read_regular_file

UNITS = (
    "etc/systemd/system/kubelet.service",
    "lib/systemd/system/kubelet.service",
    "usr/lib/systemd/system/kubelet.service",
)
DROP_INS = tuple(f"{unit}.d" for unit in reversed(UNITS))
CHECKPOINTS = (
    "cpu_manager_state",
    "memory_manager_state",
    "dra_manager_state",
    "allocated_pods_state",
    "device-plugins/kubelet_internal_checkpoint",
)
"""Below the root directory."""
_NAMESPACES = ("mnt", "pid", "user")
_MOST_PODS = 2000
_VERSION_SECONDS = 10.0


class RunningKubelet(Struct, frozen=True, kw_only=True):
    """A process of the name kubelet that is not glasslet. `flags`: its arguments; `version`: as `v1.34.10`."""

    pid: int
    flags: tuple[str, ...] = ()
    version: str = ""


class NodeSetUp(Struct, frozen=True, kw_only=True):
    """All that the rules look at. `unit`: settings of the [Service] section, the last value of each; `checkpoints`:
    content by name, None for one that is damaged; `volumes`: folder names of volume plugins (`kubernetes.io~csi`), with
    the pods that have one; `cgroup_parents`: folders of pods in the trees of control groups (`kubepods`);
    `certificates`: files below pki."""

    running: RunningKubelet | None = None
    unit: Mapping[str, str] = field(default_factory=dict)
    checkpoints: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    volumes: Mapping[str, int] = field(default_factory=dict)
    cgroup_parents: frozenset[str] = frozenset()
    certificates: frozenset[str] = frozenset()


def read_set_up(root_dir: str, *, cert_dir: str = "", root: str = "/") -> NodeSetUp:
    """Reads the node below `root`; `root_dir`, `cert_dir`: the kubelet's. Never raises for what is not there."""
    state = os.path.join(root, root_dir.lstrip("/"))
    pairs = os.path.join(root, cert_dir.lstrip("/")) if cert_dir else os.path.join(state, "pki")
    return NodeSetUp(
        running=running_kubelet(root),
        unit=_unit(root),
        checkpoints={name: _checkpoint(text) for name in CHECKPOINTS if (text := _text(f"{state}/{name}")) is not None},
        volumes=_volumes(f"{state}/pods"),
        cgroup_parents=frozenset(_cgroup_parents(os.path.join(root, "sys/fs/cgroup"))),
        certificates=frozenset(_names(pairs)),
    )


def running_kubelet(root: str = "/") -> RunningKubelet | None:
    """The Go kubelet that runs now. glasslet's own kubelet is run by Python, so its program has another name."""
    proc = os.path.join(root, "proc")
    for pid in sorted(int(name) for name in _names(proc) if name.isdigit()):
        if (_text(f"{proc}/{pid}/comm") or "").strip() != "kubelet" or not _is_of_the_node(f"{proc}/{pid}", proc):
            continue
        arguments = (_text(f"{proc}/{pid}/cmdline") or "").rstrip("\0").split("\0")
        program = _link(f"{proc}/{pid}/exe")
        if os.path.basename(program) == "kubelet":
            return RunningKubelet(pid=pid, flags=tuple(arguments[1:]), version=_version(program))
    return None


def _is_of_the_node(process: str, proc: str) -> bool:
    """Whether a process is root's in the node's own namespaces. A container may call its process what it likes."""
    try:
        own = os.stat(process).st_uid == os.stat(f"{proc}/self").st_uid
    except OSError:
        return False
    return own and all(_link(f"{process}/ns/{one}") == _link(f"{proc}/self/ns/{one}") for one in _NAMESPACES)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _version(program: str) -> str:
    try:
        info = os.stat(program)
        if info.st_uid != 0 or info.st_mode & 0o022:
            return ""  # what others may write is not run
        done = subprocess.run(  # noqa: S603
            [program, "--version"],
            check=False,
            capture_output=True,
            text=True,
            timeout=_VERSION_SECONDS,
            stdin=subprocess.DEVNULL,
            env={},
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout.strip().removeprefix("Kubernetes ")[:64]


def _unit(root: str) -> dict[str, str]:
    """The [Service] section of the unit, with its drop-ins in the order of their names."""
    files = [next((unit for unit in UNITS if _text(os.path.join(root, unit)) is not None), "")]
    drop_ins: dict[str, str] = {}
    for folder in DROP_INS:
        for name in _names(os.path.join(root, folder)):
            if name.endswith(".conf"):
                drop_ins[name] = f"{folder}/{name}"
    files += [drop_ins[name] for name in sorted(drop_ins)]
    settings: dict[str, str] = {}
    for file in filter(None, files):
        settings |= _service_section(_text(os.path.join(root, file)) or "")
    return settings


def _service_section(text: str) -> dict[str, str]:
    section, found = "", {}
    for line in text.replace("\\\n", " ").split("\n"):
        if line.startswith("["):
            section = line.strip()
        elif section == "[Service]" and "=" in line and not line.lstrip().startswith(("#", ";")):
            name, _, value = line.partition("=")
            found[name.strip()] = value.strip()
    return found


def _checkpoint(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _volumes(pods: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for pod in _names(pods)[:_MOST_PODS]:
        for kind in ("volumes", "volumeDevices"):
            for plugin in _names(f"{pods}/{pod}/{kind}"):
                found[plugin] = found.get(plugin, 0) + 1
    return found


def _cgroup_parents(tree: str) -> Iterator[str]:
    """Of cgroup v2 in the tree itself, of v1 in its controllers' trees."""
    for place in ("", "cpu", "memory", "systemd"):
        for name in ("kubepods", "kubepods.slice"):
            if os.path.isdir(os.path.join(tree, place, name)):
                yield name


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _text(path: str) -> str | None:
    try:
        return read_regular_file(path).decode("utf-8", "replace")
    except FileProblem:
        return None
