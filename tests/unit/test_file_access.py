"""Which modules touch files: `host/` for everything that belongs to the node, its pods and their containers; elsewhere
only the modules below, each for files of its own."""

from __future__ import annotations

import ast
from pathlib import Path

import glasslet

ROOT = Path(glasslet.__file__).parent
OF_OS = {
    *("open", "listdir", "scandir", "stat", "lstat", "unlink", "mkdir", "makedirs", "rename", "replace", "rmdir"),
    *("symlink", "link", "chmod", "chown", "readlink", "statvfs", "utime", "truncate", "fwalk", "walk", "remove"),
}
OF_PATHLIB = frozenset(
    (
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "iterdir",
        "rglob",
        "glob",
        "unlink",
        "mkdir",
        "rmdir",
        "touch",
    )
)

OWN_FILES: dict[str, str] = {
    "cli": "a program of its own, with its own state folder",
    "box": "a process of its own, with the state folder of `glasslet up`",
    "config": "configuration, which is read before anything else exists",
    "kubeapi/credentials.py": "kubeconfig and the certificates that it names",
    "identity": "the node's key pair and kubeconfig",
    "server/transport": "TLS files and its own socket",
    "server/handlers/system_logs.py": "the machine's logs, as the node log query asks for them",
    "sources": "manifests",
    "record": "the record's own folder",
    "telemetry/metrics/agent.py": "figures of its own process",
    "telemetry/profiles/sampling.py": "CPU of its own threads",
    "devices": "the checkpoint and sockets of device plugins",
    "plugin_registry": "sockets of plugins",
    "runtime/cri": "the runtime's socket",
    "runtime/images": "records of pulls, and registry credentials",
    "runtime/logs": "logs of containers, which the runtime writes",
    "runtime/garbage": "log folders of pods",
    "stats/disks": "sizes of file systems and folders",
    "stats/cgroups": "open files of processes, below /proc",
    "stats/node_figures.py": "figures of the machine",
    "calls/package_source.py": "the package's own source",
    "glass/page/files.py": "the page, which is part of the package",
    "volumes": "volumes, by the functions of host/ where a container can write",
    "assembly/foundation.py": "the root directory itself",
}


def touches_files(source: str) -> list[str]:
    """Calls of open(), of file functions of `os`, and of pathlib's methods."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        call = node.func
        if isinstance(call, ast.Name) and call.id == "open":
            found.append("open")
        elif isinstance(call, ast.Attribute):
            of_os = isinstance(call.value, ast.Name) and call.value.id == "os" and call.attr in OF_OS
            if of_os or (call.attr in OF_PATHLIB and isinstance(call.value, ast.Name | ast.BinOp | ast.Call)):
                found.append(call.attr)
    return found


def toucher(path: Path) -> str:
    """The module, if it touches files."""
    return path.relative_to(ROOT).as_posix() if touches_files(path.read_text()) else ""


TOUCHERS = sorted(name for path in ROOT.rglob("*.py") if "_generated" not in str(path) and (name := toucher(path)))


def test_only_host_and_the_modules_listed_here_touch_files() -> None:
    places = ("host", *OWN_FILES)
    others = [name for name in TOUCHERS if not any(name == place or name.startswith(f"{place}/") for place in places)]
    assert others == []


def test_every_entry_of_the_list_still_touches_files() -> None:
    unused = [
        place for place in OWN_FILES if not any(name == place or name.startswith(f"{place}/") for name in TOUCHERS)
    ]
    assert unused == []


def test_a_call_is_found_in_any_of_its_forms() -> None:
    source = "open('a')\nos.stat('a')\nPath('a').read_text()\n(folder / 'a').unlink()\n"
    assert sorted(touches_files(source)) == ["open", "read_text", "stat", "unlink"]
