"""A real control plane for tests: etcd, kube-apiserver, controller manager and scheduler, on loopback.

The program is built once by `tests/controlplane/build`; without Go and without a built one, tests skip and say so, with
CI=true in the environment they fail instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

_NEEDED_BY_PODS = ("configmaps", "persistentvolumeclaims", "persistentvolumes", "secrets", "serviceaccounts")
"""What the node authorizer grants for the sake of a pod, once it has seen where that pod is to run."""
SOURCES = Path(__file__).resolve().parents[1] / "controlplane"
BINARY = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glasslet" / "controlplane"

Plain = dict[str, Any]


def missing_requirement() -> str | None:
    """What this machine lacks to run a control plane, in words; None when nothing does."""
    if shutil.which("kubectl") is None:
        return "kubectl is not installed"
    if not BINARY.exists() and shutil.which("go") is None:
        return f"{BINARY} is not built and Go is not installed (tests/controlplane/build makes it)"
    return None


def _fingerprint() -> str:
    """Of the program's sources; times say nothing in a fresh checkout."""
    parts = sorted(path for path in SOURCES.iterdir() if path.is_file())
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in parts)).hexdigest()


def build() -> None:
    """Makes the program. Nothing to do if it is there and of these sources, or if there is nothing to build it with."""
    made_of = BINARY.with_suffix(".sources")
    wanted = _fingerprint()
    if BINARY.exists() and (shutil.which("go") is None or (made_of.exists() and made_of.read_text() == wanted)):
        return
    BINARY.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([str(SOURCES / "build"), str(BINARY)], check=True, stdout=subprocess.DEVNULL)
    made_of.write_text(wanted)


class ControlPlane:
    """One running control plane. `node` is the node that the node kubeconfig is for."""

    def __init__(self, *options: str, node: str = "node-a") -> None:
        self.node = node
        build()
        self._process = subprocess.Popen(
            [str(BINARY), "-node", node, "-controller-manager", "-scheduler", *options], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the control plane ended at once with code {self._process.wait()}")
        self.answer: dict[str, Any] = json.loads(line)
        self.folder = Path(self.answer["dir"])
        self.kubeconfig = self.answer["kubeconfig"]
        self.node_kubeconfig = self.answer["nodeKubeconfig"]
        self.ca = self.answer["ca"]
        self.audit_log = Path(self.answer["auditLog"])
        self._audited = 0

    def stop(self) -> None:
        """Ends it; it removes its folder."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(120)
        if self._process.stdout is not None:
            self._process.stdout.close()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """The API server answers nobody while the body runs: its process is stopped."""
        pid = self._child("kube-apiserver")
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _child(self, name: str) -> int:
        for path in list(Path("/proc").glob("[0-9]*")):
            with contextlib.suppress(OSError):
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == self._process.pid and name in (path / "cmdline").read_text().split("\0"):
                    return int(path.name)
        raise AssertionError(f"the control plane has no {name}")

    def kubectl(self, verb: str, *arguments: str, stdin: str = "", check: bool = True, seconds: float = 120) -> str:
        """Runs kubectl as the administrator; its output."""
        done = subprocess.run(
            ["kubectl", verb, "--kubeconfig", self.kubeconfig, *arguments],
            input=stdin.encode(),
            capture_output=True,
            timeout=seconds,
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {verb} {' '.join(arguments)}: {done.stderr.decode()}")
        return (done.stdout if check else done.stdout + done.stderr).decode()

    def apply(self, *manifests: Plain) -> None:
        """Creates or changes objects."""
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(manifests))

    def get(self, kind: str, name: str, namespace: str = "default") -> Plain | None:
        """One object; None if it does not exist."""
        text = self.kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def pods(self, namespace: str = "default") -> dict[str, Plain]:
        """All pods of a namespace, by name."""
        items = json.loads(self.kubectl("get", "pods", "-n", namespace, "-o", "json"))["items"]
        return {item["metadata"]["name"]: item for item in items}

    def wait_for(
        self, name: str, what: Callable[[Plain | None], object], seconds: float = 120.0, kind: str = "pod"
    ) -> Plain | None:
        """Asks until the object is as wanted; the object then. Raises AssertionError with what is there instead."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                found = self.get(kind, name)
            except AssertionError:  # an API server that was away may refuse a first request or two
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
                continue
            if what(found):
                return found
            if time.monotonic() > deadline:
                shown = json.dumps(found and {k: found.get(k) for k in ("metadata", "status")}, indent=1)
                raise AssertionError(f"{kind} {name} not as wanted in {seconds} s: {shown}")
            time.sleep(0.1)

    def wait_for_default_service_account(self) -> None:
        """Pods can be created from then on."""
        self.wait_for("default", lambda found: found is not None, kind="serviceaccount")

    def events(self, name: str, uid: str = "") -> list[tuple[str, str]]:
        """(reason, message) of the events of an object, oldest first; of all that had the name, if no UID is given."""
        selector = f"involvedObject.name={name}" + (f",involvedObject.uid={uid}" if uid else "")
        text = self.kubectl("get", "events", "-o", "json", "--field-selector", selector)
        items = sorted(json.loads(text)["items"], key=lambda one: one["metadata"]["creationTimestamp"])
        return [(one["reason"], one["message"]) for one in items]

    def wait_for_event(self, name: str, reason: str, words: str = "", seconds: float = 120.0) -> str:
        """Asks until the pod has an event of this reason whose message has these words; the message. Events come some
        time after what they tell of, and those of an earlier pod of that name are still there."""
        deadline = time.monotonic() + seconds
        pod = self.get("pod", name)
        assert pod is not None
        while True:
            told = self.events(name, pod["metadata"]["uid"])
            for found, message in reversed(told):
                if found == reason and words in message:
                    return message
            assert time.monotonic() < deadline, f"{name} has no event {reason} with {words!r}: {told}"
            time.sleep(0.1)

    def forget_refusals(self) -> None:
        """Those so far were of an agent that is gone."""
        self._audited = len(self._whole_lines())

    def _whole_lines(self) -> bytes:
        """Of the audit log: the last line may be half written."""
        text = self.audit_log.read_bytes()
        return text[: text.rfind(b"\n") + 1]

    def refusals(self) -> list[str]:
        """Requests of the node that the API server refused with 401 or 403, and why, from the audit log. Not what a pod
        needs and was given a moment later: the server had not seen yet that the pod was bound to the node."""
        found: list[tuple[tuple[str, str], int, str]] = []
        for line in self._whole_lines()[self._audited :].splitlines():
            entry = json.loads(line)
            answer = entry.get("responseStatus", {})
            code = answer.get("code", 0)
            if entry["user"].get("username") != f"system:node:{self.node}":
                continue
            resource = entry.get("objectRef", {}).get("resource", "")
            request = (entry["verb"], entry["requestURI"])
            if code in (401, 403):
                found.append((request, code, answer.get("message", "")))
            elif code in (200, 201) and resource in _NEEDED_BY_PODS:
                found = [one for one in found if one[:2] != (request, 403)]
        return [f"{code} {' '.join(request)}: {message}" for request, code, message in found]


def condition(found: Plain | None, kind: str) -> str:
    """The status of a condition, "" without one."""
    conditions = (found or {}).get("status", {}).get("conditions", [])
    return next((str(one["status"]) for one in conditions if one["type"] == kind), "")


def is_ready(found: Plain | None) -> bool:
    """Whether the pod or node is ready."""
    return condition(found, "Ready") == "True"


def phase(found: Plain | None) -> str:
    """The phase of a pod, "" when it does not exist."""
    return str((found or {}).get("status", {}).get("phase", ""))
