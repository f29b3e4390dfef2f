"""The two kubelets as processes with the same configuration, on the same containerd, as the same node."""

from __future__ import annotations

import compileall
import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.conftest import cluster_member
from tests.fakes.agent import NODE, Agent
from tests.fakes.cgroups import real_root
from tests.fakes.containerd import PrivateContainerd, unmount_below
from tests.fakes.control_plane import ControlPlane

import glasslet

VERSION = "v1.34.10"
SOURCES = Path(__file__).resolve().parent / "go_kubelet"
OURS = Path(glasslet.__file__).parent
BINARY = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glasslet" / f"go_kubelet-{VERSION}"

CONFIGURATION = {
    "maxPods": 250,
    "cgroupsPerQOS": True,
    "cgroupDriver": "cgroupfs",
    "enforceNodeAllocatable": ["pods"],
    "makeIPTablesUtilChains": False,
    "containerLogMaxSize": "1Gi",  # the log that is read must not be rotated away meanwhile
    "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
}
"""Settings beside the defaults and those that a test machine needs."""


def go_kubelet() -> Path:
    """Returns the Go kubelet's path; builds it if it does not exist. Raises FileNotFoundError if it cannot be built."""
    if not BINARY.exists():
        if shutil.which("go") is None:
            raise FileNotFoundError(f"{BINARY} is not built and Go is not installed ({SOURCES / 'build'} makes it)")
        subprocess.run([str(SOURCES / "build"), str(BINARY)], check=True)
    return BINARY


@contextlib.contextmanager
def contender(
    folder: Path,
    plane: ControlPlane,
    runtime: PrivateContainerd,
    program: tuple[str, ...] = (),
    **configuration: Any,
) -> Iterator[Agent]:
    """A kubelet, not started yet (glasslet if no program is given), with these settings beside CONFIGURATION.
    Everything it leaves is removed afterwards."""
    # As an installation does; without it each start compiles 700 modules, which takes half a second.
    compileall.compile_dir(OURS, quiet=1)
    with real_root() as root:
        agent = cluster_member(plane, runtime, folder, **CONFIGURATION | configuration, cgroupRoot=root.path)
        agent.program = program or agent.program
        try:
            yield agent
        finally:
            everything = ("--all", "-n", "default", "--grace-period=0", "--force", "--wait=false")
            plane.kubectl("delete", "pods", *everything, check=False)
            agent.kill()
            runtime.remove_all_pods()
            unmount_below(folder)
            plane.kubectl("delete", "node", NODE, "--ignore-not-found", check=False)
            shutil.rmtree(folder, ignore_errors=True)
            _forget_dangling_log_links(folder)


def _forget_dangling_log_links(folder: Path) -> None:
    """Removes links for log collectors: their folder is shared by the whole machine."""
    for link in Path("/var/log/containers").glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(f"{folder}/"):
            link.unlink(missing_ok=True)
