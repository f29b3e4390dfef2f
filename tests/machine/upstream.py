"""The Go kubelet of the same version, for comparison on the same machine: built from its Go module, once."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

from tests.conformance.suite import SOURCES, VERSION
from tests.machine.image import CACHE
from tests.machine.node import UNIT, Node

PROGRAM = CACHE / f"kubelet-{VERSION}"
_PLACE = "/usr/local/bin/go-kubelet"
_DROP_IN = f"/run/systemd/system/{UNIT}.d/upstream.conf"


def missing_requirement() -> str | None:
    """What is missing, in words; None when nothing is."""
    if not PROGRAM.exists() and shutil.which("go") is None:
        return f"{PROGRAM} is not built and Go is not installed"
    return None


def build() -> None:
    """Minutes the first time: `go build` in the module of the node suite, which needs all of it anyway."""
    if PROGRAM.exists():
        return
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    stamp = f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION}"
    begun = PROGRAM.with_suffix(f".{os.getpid()}")
    command = ("go", "build", "-trimpath", "-ldflags", stamp, "-o", str(begun), "k8s.io/kubernetes/cmd/kubelet")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
    subprocess.run(command, cwd=SOURCES, env=environment, check=True)
    begun.rename(PROGRAM)


@contextlib.contextmanager
def running_instead(node: Node) -> Iterator[None]:
    """The unit runs the Go kubelet with the same configuration and flags while the body does."""
    if not node.machine.succeeds(f"test -x {_PLACE}"):
        node.machine.write(_PLACE, PROGRAM.read_bytes())
        node.machine.run(f"chmod +x {_PLACE}")
    command = node.agent.shown("ExecStart").partition("argv[]=")[2].partition(" ;")[0].partition(" ")[2]
    node.machine.write(_DROP_IN, f"[Service]\nExecStart=\nExecStart={_PLACE} {command}\n")
    try:
        node.machine.run("systemctl daemon-reload")
        node.agent.restart()
        node.wait_until_ready()
        yield
    finally:
        node.machine.run(f"rm {_DROP_IN}; systemctl daemon-reload")
        node.agent.restart()
        node.wait_until_ready()


if __name__ == "__main__":
    build()
