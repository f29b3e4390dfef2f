"""The real controllers beside CSI drivers: external-attacher, -provisioner, -resizer, -snapshotter, as processes. Built
once by `tests/go/csi-sidecars/build`.

Building takes a quarter of an hour, so tests that need them have a lane of their own: `scripts/test-storage`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.skips import on_purpose

SOURCES = Path(__file__).resolve().parents[1] / "go" / "csi-sidecars" / "build"
STORAGE = "GLASSLET_TEST_STORAGE"
"""In the environment: the lane is asked for; its value says how long: seconds of churn."""
ARGUMENTS = {
    "csi-attacher": ("--timeout=30s", "--worker-threads=20", "--reconcile-sync=10s"),
    "csi-provisioner": (
        "--timeout=30s",
        "--default-fstype=ext4",
        "--worker-threads=5",
        "--feature-gates=Topology=false",
    ),
    "csi-resizer": ("--timeout=30s", "--handle-volume-inuse-error=false"),
    "csi-snapshotter": ("--timeout=30s",),
    "snapshot-controller": (),
}
"""Programs and what is special to each. All but the last talk to the driver."""


def folder_of_programs() -> Path:
    """Where the programs of these sources are, once they are built."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glasslet"
    return cache / f"csi-sidecars-{hashlib.sha256(SOURCES.read_bytes()).hexdigest()[:12]}"


def snapshot_definitions() -> Path:
    """The folder of the CustomResourceDefinitions of snapshots."""
    return folder_of_programs() / "crd"


def build() -> None:
    """Makes the programs where they are not there yet."""
    if not all((folder_of_programs() / name).exists() for name in (*ARGUMENTS, "crd")):
        if shutil.which("go") is None:
            pytest.fail(f"{folder_of_programs()} is not built and Go is not installed")
        subprocess.run([str(SOURCES), str(folder_of_programs())], check=True, stdout=subprocess.DEVNULL)


def asked_for() -> float:
    """Seconds of churn. Skips the test outside of the lane."""
    if STORAGE not in os.environ:
        pytest.skip(on_purpose("TESTS WITH CSI CONTROLLERS NOT RUN: scripts/test-storage does"))
    return float(os.environ[STORAGE])


class Sidecar:
    """One of them as a process, beside the driver at `socket`."""

    def __init__(self, name: str, *, kubeconfig: str, socket: Path, logs: Path) -> None:
        self._log = logs / f"{name}.log"
        self._command = [
            str(folder_of_programs() / name),
            f"--kubeconfig={kubeconfig}",
            "--v=4",
            "--leader-election=false",
            *(() if name == "snapshot-controller" else (f"--csi-address={socket}",)),
            *ARGUMENTS[name],
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def ended(self) -> str:
        """The end of its log if it ended by itself, else ""."""
        if self._process is None or self._process.poll() is None:
            return ""
        return self._log.read_text(errors="replace")[-2000:]


@contextmanager
def sidecars(*names: str, kubeconfig: str, socket: Path, logs: Path) -> Iterator[dict[str, Sidecar]]:
    """They run meanwhile."""
    with ExitStack() as stack:
        found = {}
        for name in names:
            found[name] = Sidecar(name, kubeconfig=kubeconfig, socket=socket, logs=logs)
            stack.callback(found[name].kill)
            found[name].start()
        yield found
