"""A private containerd of the 2.x line, for what Debian's 1.6 cannot do yet.

Its programs, and the runc that it wants, are built once by `tests/go/newer-containerd/build`; without Go and without
built ones, tests skip and say so, with CI=true in the environment they fail instead.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.containerd import (
    PrivateContainerd,
    cni_plugins,
    import_test_images,
    missing_requirement,
)

SOURCES = Path(__file__).resolve().parents[1] / "go" / "newer-containerd"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glasslet"
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "runc")


def folder_of_programs() -> Path:
    """Where the programs of the versions in go.mod are, once they are built."""
    required = (SOURCES / "go.mod").read_text()
    versions = [
        re.findall(rf"^\s*github\.com/{module} (v\S+)", required, re.MULTILINE)[0]
        for module in ("containerd/containerd/v2", "opencontainers/runc")
    ]
    return _CACHE / "-".join(("containerd", versions[0], "runc", versions[1]))


def missing_newer_requirement() -> str | None:
    """What this machine lacks to run it, in words; None when nothing does."""
    built = all((folder_of_programs() / name).exists() for name in PROGRAMS)
    for tool in () if built else ("go", "gcc", "pkg-config"):
        if shutil.which(tool) is None:
            return f"{folder_of_programs()} is not built and {tool} is not installed ({SOURCES / 'build'} makes it)"
    if not built and subprocess.run(["pkg-config", "libseccomp"], check=False).returncode:
        return (
            f"{folder_of_programs()} is not built and libseccomp is not there (Debian: apt-get install libseccomp-dev)"
        )
    return missing_requirement()


def build() -> Path:
    """Makes the programs where they are not there yet; their folder."""
    folder = folder_of_programs()
    if not all((folder / name).exists() for name in PROGRAMS):
        subprocess.run([str(SOURCES / "build"), str(folder)], check=True, stdout=subprocess.DEVNULL)
    return folder


class NewerContainerd(PrivateContainerd):
    """As the other, of a newer line: the configuration has another form."""

    def __init__(self, folder: Path) -> None:
        self.programs = str(build())
        super().__init__(folder)

    def import_images(self, archive: Path) -> None:
        """Makes the images of an OCI archive known."""
        self._ctr("images", "import", "--local", "--snapshotter", self._snapshotter, str(archive))

    def _configuration(self) -> str:
        return f"""
version = 3
imports = []
root = "{self.folder}/root"
state = "{self.folder}/state"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = "{self.socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{self.folder}/opt"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{self._snapshotter}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{self.sandbox_image}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "{self.programs}/runc"
  Root = "{self.folder}/runc"
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["{cni_plugins()}"]
  conf_dir = "{self._networks}"
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
"""


@pytest.fixture(scope="session")
def newer_containerd() -> Iterator[PrivateContainerd]:
    """A running one."""
    if (missing := missing_newer_requirement()) is not None:
        pytest.skip(f"TESTS ON THE NEWER CONTAINERD NOT RUN: {missing}")
    folder = Path(tempfile.mkdtemp(prefix="glt-"))
    folder.chmod(0o711)  # who is root in a user namespace must be able to come through
    private = NewerContainerd(folder)
    try:
        private.start()
        import_test_images(private)
        yield private
    finally:
        private.stop()
