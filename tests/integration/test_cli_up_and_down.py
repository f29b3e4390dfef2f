"""`glasslet up` to `glasslet down` on a private containerd of its own: what a newcomer does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from glasslet.cli.standalone.processes import command_line
from glasslet.cli.standalone.state_dir import StateDir
from glasslet.record.archive import Archive
from tests.fakes.containerd import images_script, missing_requirement

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

STAYS = """
apiVersion: v1
kind: Pod
metadata: {name: stays}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: main
    image: docker.io/library/busybox:1.36
    command: [sh, -c, "echo hello; trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"]
"""
CRASHES = """
apiVersion: v1
kind: Pod
metadata: {name: crashes}
spec:
  containers:
  - {name: main, image: "docker.io/library/busybox:1.36", command: [sh, -c, "echo about to fail; exit 3"]}
"""
RECOVERS = """
apiVersion: v1
kind: Pod
metadata: {name: recovers}
spec:
  volumes: [{name: v, emptyDir: {}}]
  containers:
  - name: main
    image: "docker.io/library/busybox:1.36"
    command: [sh, -c, "test -e /v/tried && exec sleep 1000; touch /v/tried; echo no database; exit 3"]
    volumeMounts: [{name: v, mountPath: /v}]
"""
UNWELL = """
apiVersion: v1
kind: Pod
metadata: {name: unwell}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: "docker.io/library/busybox:1.36"
    command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"]
    livenessProbe: {exec: {command: [sh, -c, "echo no pulse; exit 3"]}, periodSeconds: 1, failureThreshold: 2}
"""
UNREACHABLE = """
apiVersion: v1
kind: Pod
metadata: {name: unreachable}
spec:
  containers:
  - {name: main, image: "127.0.0.1:1/app:1"}
"""
GLASSLET = [sys.executable, "-c", "from glasslet.cli.app import main; main()"]
UP = ("--port", "0", "--healthz-port", "0", "--hostname", "here", "--until-ready", "120")


def eventually(happened: Callable[[], object], seconds: float = 120.0) -> None:
    """Asks until it is so."""
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, "did not happen"
        time.sleep(0.05)


class Machine:
    """A state folder, manifests, and the command."""

    def __init__(self, folder: Path) -> None:
        self.state = StateDir(folder / "state")
        self.pods = folder / "pods"
        self.pods.mkdir()
        (self.pods / "stays.yaml").write_text(STAYS)
        self.archive = folder / "images.tar"
        images = images_script()
        built = [images.busybox_image(), images.pause_image(("registry.k8s.io/pause:3.10",))]
        images.write_archive(self.archive, built)

    def run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Runs the command to its end."""
        environment = {**os.environ, "GLASSLET_ROOT": str(self.state.root_dir)}
        return subprocess.run(
            [*GLASSLET, *words], input=stdin, env=environment, capture_output=True, check=False, timeout=240
        )

    def up(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """`glasslet up` in the background."""
        archive = ("--image-archive", str(self.archive))
        return self.run("up", *words, "--state", str(self.state.path), *archive, *UP, "--detach")

    def down(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """`glasslet down`."""
        return self.run("down", "--state", str(self.state.path), *words)

    def pod(self, name: str) -> dict[str, Any]:
        """The row of a pod in `ps`."""
        (row,) = self.rows(name)
        return row

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The row of a pod in `ps`, if there is one."""
        rows = json.loads(self.run("ps", "-o", "json").stdout)["pods"]
        return [row for row in rows if row["name"] == f"{name}-here"]

    def end_agent(self, number: signal.Signals) -> None:
        """Sends the signal and waits for the end."""
        pid = int(self.state.agent_pid.read_text())
        os.kill(pid, number)
        eventually(lambda: not command_line(pid))

    def why_until(self, name: str, *words: str) -> str:
        """What `why` says once it says all these words: a pod that crashes runs in between."""
        said = ""

        def says_so() -> bool:
            nonlocal said
            said = self.run("why", name).stdout.decode()
            return all(one in said for one in words)

        eventually(says_so)
        return said

    def main_container(self, name: str) -> dict[str, Any]:
        """The main container of a pod in `describe`."""
        container: dict[str, Any] = json.loads(self.run("describe", name, "-o", "json").stdout)["containers"][0]
        return container


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    missing = missing_requirement()
    if missing is not None:
        pytest.skip(missing)
    made = Machine(tmp_path)
    yield made
    left = made.down("--purge")
    assert left.returncode == 0, left.stderr.decode()


def leftovers(machine: Machine) -> list[str]:
    """Mounts, processes and network devices that still belong to the machine's state."""
    mine = (str(machine.state.path), str(machine.state.run))
    mounts = [
        line for line in Path("/proc/self/mountinfo").read_text().splitlines() if any(path in line for path in mine)
    ]
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if any(path in words for path in mine):
                found.append(words.replace("\0", " "))
    links = [link.name for link in Path("/sys/class/net").iterdir() if link.name == f"gl{machine.state.key}"]
    return mounts + found + links


def test_pods_come_up_are_explained_and_go_without_a_trace(machine: Machine) -> None:
    (machine.pods / "crashes.yaml").write_text(CRASHES)
    up = machine.up(str(machine.pods))
    assert up.returncode == 0, up.stderr.decode()
    assert machine.pod("stays")["isReady"]

    trace = json.loads(machine.run("trace", "stays", "-o", "json").stdout)
    named = sum(share["ms"] for share in trace["shares"])
    assert named + trace["unnamedMs"] == pytest.approx(trace["totalMs"], abs=0.1)
    assert trace["unnamedMs"] < 0.2 * trace["totalMs"]

    why = machine.why_until("crashes", "last words  about to fail")
    assert "exited with code 3" in why

    eventually(lambda: machine.run("logs", "stays").stdout)  # it is ready before it has said a word
    assert machine.run("logs", "stays").stdout == b"hello\n"
    assert machine.run("exec", "stays", "--", "sh", "-c", "exit 7").returncode == 7
    assert machine.run("exec", "-i", "stays", "--", "cat", stdin=b"in and out").stdout == b"in and out"

    down = machine.down()
    assert down.returncode == 0, down.stderr.decode()
    assert leftovers(machine) == []
    gone = machine.run("why", "stays")
    assert b"default/stays-here was removed" in gone.stdout


def test_a_container_that_its_liveness_probe_killed_names_the_probe(machine: Machine) -> None:
    (machine.pods / "unwell.yaml").write_text(UNWELL)
    machine.up(str(machine.pods))
    why = machine.why_until("unwell", "main was killed because its liveness probe failed (")
    assert "2 of 2 failures), exit code 0" in why
    assert " UTC" in why.partition("\n")[0]


def test_a_registry_that_refuses_the_connection_is_named(machine: Machine) -> None:
    (machine.pods / "unreachable.yaml").write_text(UNREACHABLE)
    machine.up(str(machine.pods))
    why = machine.why_until("unreachable", "127.0.0.1:1 refused the connection")
    assert "cannot get image 127.0.0.1:1/app:1 of container main: 127.0.0.1:1 refused" in why
    assert "glasslet logs" not in why


def test_a_killed_agent_leaves_its_pods_and_the_next_one_adopts_them(machine: Machine) -> None:
    machine.up(str(machine.pods))
    before = machine.main_container("stays")
    written = Archive(machine.state.root_dir / "glasslet" / "records")
    eventually(lambda: any(ref.name == "stays-here" for ref in written.pods()))
    machine.end_agent(signal.SIGKILL)
    down = machine.run("ps")
    assert down.returncode == 3
    assert machine.run("trace", "stays").returncode == 0

    assert machine.up().returncode == 0
    after = machine.main_container("stays")
    assert (after["id"], after["restarts"]) == (before["id"], 0)
    trace = json.loads(machine.run("trace", "stays", "-o", "json").stdout)
    assert len(trace["gaps"]) == 1


def test_a_pod_that_was_restarted_tells_what_it_said_last(machine: Machine) -> None:
    (machine.pods / "recovers.yaml").write_text(RECOVERS)
    assert machine.up(str(machine.pods)).returncode == 0
    why = machine.why_until("recovers", "is fine", "restarted once")
    assert "last end    container main exited with code 3" in why
    assert "last words  no database" in why


@pytest.mark.parametrize("words", [("--until-ready", "120"), ()], ids=["until ready", "detached at once"])
def test_broken_manifests_are_an_error_with_all_problems_and_the_other_pods_run(
    machine: Machine, words: tuple[str, ...]
) -> None:
    wrong = STAYS.replace("stays", "Wrong").replace("spec:", "spec:\n  dnsPolicy: Mine\n  hostNetwork: perhaps")
    (machine.pods / "wrong.yaml").write_text(wrong)
    archive = ("--image-archive", str(machine.archive))
    up = machine.run(
        "up", str(machine.pods), "--state", str(machine.state.path), *archive, *UP[:-2], *words, "--detach"
    )
    said = up.stderr.decode()
    assert up.returncode == 1
    assert "1 manifest is broken" in said
    assert f"{machine.pods / 'wrong.yaml'}:6: spec.dnsPolicy: Unsupported value" in said
    assert "spec.hostNetwork: want true or false" in said
    assert "metadata.name: Invalid value" in said
    eventually(lambda: [pod["isReady"] for pod in machine.rows("stays")] == [True])
    assert "spec.dnsPolicy" in machine.run("ps").stdout.decode()
    assert "spec.dnsPolicy" in machine.run("why", "node").stdout.decode()


def test_ctrl_c_ends_the_agent_and_leaves_the_pods(machine: Machine) -> None:
    machine.up(str(machine.pods))
    container = machine.main_container("stays")["id"]
    machine.end_agent(signal.SIGTERM)
    foreground = subprocess.Popen(
        [*GLASSLET, "up", "--state", str(machine.state.path), *UP[:-2]], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert foreground.stdout is not None
    line = foreground.stdout.readline()
    while b"1/1" not in line:
        assert line, foreground.communicate()[1]
        line = foreground.stdout.readline()
    foreground.send_signal(signal.SIGINT)
    out, _ = foreground.communicate(timeout=120)
    assert foreground.returncode == 0
    assert b"its pods keep running" in out
    machine.up()
    assert machine.main_container("stays")["id"] == container


def test_a_file_that_joins_a_followed_folder_starts_its_pod(machine: Machine) -> None:
    machine.up(str(machine.pods))
    (machine.pods / "later.yaml").write_text(STAYS.replace("stays", "later"))
    up = machine.up(str(machine.pods))
    assert b"already runs" in up.stdout
    eventually(lambda: [pod["isReady"] for pod in machine.rows("later")] == [True])
    assert machine.run("down", "--state", str(machine.state.path), str(machine.pods / "later.yaml")).returncode == 0
    eventually(lambda: not machine.rows("later"))
    assert machine.pod("stays")["isReady"]


def test_pods_that_never_settle_are_told_with_exit_code_4(machine: Machine) -> None:
    (machine.pods / "stays.yaml").write_text(
        STAYS.replace(
            "  containers:",
            "  initContainers:\n  - {name: first, image: "
            '"docker.io/library/busybox:1.36", command: [sleep, "1000"]}\n  containers:',
        )
    )
    archive = ("--image-archive", str(machine.archive))
    up_for = ("up", str(machine.pods), "--state", str(machine.state.path), *archive, "--detach", *UP[:-1])
    machine.run(*up_for, "0")
    eventually(lambda: any("init container first runs" in row["now"] for row in machine.rows("stays")))
    up = machine.run(*up_for, "4")
    assert up.returncode == 4
    assert b"not settled after 4 s: default/stays-here (init container first runs (1 of 1))" in up.stderr
