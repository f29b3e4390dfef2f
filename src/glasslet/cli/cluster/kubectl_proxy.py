"""kubectl as the way to the API server: `kubectl proxy` on a Unix socket that only this user can reach.

A kubectl plugin always runs beside kubectl, and kubectl already knows every kind of kubeconfig: merged files, contexts,
tokens, client certificates, exec plugins, impersonation, proxies, server paths. `kubectl get --raw` would know them as
well, but it is one process for each request, cannot follow a stream, and hides the body of a refusal, which says which
pod was meant. The proxy is one process for a command, whatever number of nodes it asks, and passes bodies and status
codes on as they are.
"""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from glasslet.cli.failure import Failure

_START_SECONDS = 60.0
"""An exec plugin may ask a person to log in."""
_END_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def running_proxy(options: Sequence[str]) -> Iterator[Path]:
    """The socket of a `kubectl proxy` with these options of kubectl; it ends with the body. Raises Failure."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise Failure("kubectl is not in PATH; kubectl glass uses it to reach the API server")
    # Mode 0700: what the socket passes on has the user's rights.
    with tempfile.TemporaryDirectory(prefix="kubectl-glass-") as folder:
        path = Path(folder) / "s"
        process = subprocess.Popen(  # noqa: S603 - the user's own kubectl and options
            [kubectl, "proxy", f"--unix-socket={path}", "--append-server-path", *options],
            stdout=subprocess.DEVNULL,
            # Standard input and error stay: an exec plugin may talk with the person.
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        try:
            _await_socket(path, process)
            yield path
        finally:
            _end(process)


def kubectl_output(arguments: Sequence[str]) -> str:
    """Standard output of a short kubectl command. Raises Failure with its error."""
    kubectl = shutil.which("kubectl") or "kubectl"
    try:
        done = subprocess.run([kubectl, *arguments], capture_output=True, check=False, timeout=_START_SECONDS)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"kubectl {arguments[0]}: {error}") from error
    if done.returncode != 0:
        raise Failure(done.stderr.decode(errors="replace").strip().removeprefix("error: ") or "kubectl failed")
    return done.stdout.decode(errors="replace")


def _await_socket(path: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_SECONDS
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as trial:
            trial.connect(str(path))
            return
        if process.poll() is not None:
            # kubectl has said why on standard error.
            raise Failure("kubectl cannot use this configuration")
        if time.monotonic() > until:
            raise Failure(f"kubectl proxy does not listen after {_START_SECONDS:.0f} s")
        time.sleep(0.01)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_with_parent() -> None:
    """A killed command leaves no proxy behind (prctl(2))."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
