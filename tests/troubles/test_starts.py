"""Starts that are refused: the command's own error has the cause, and `why node` has it from disk afterwards."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from glasslet.answers.states import Rule
from glasslet.answers.wire import to_plain
from glasslet.glass.offline import node_offline
from tests.fakes.agent import free_port
from tests.fakes.containerd import PrivateContainerd
from tests.troubles.table import Plain, Trouble, chosen, each_chosen, fits, judge

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.timeout(120),
]

AREA = "Starts"


@dataclass
class Start:
    """One start: its folder, configuration and flags; `held` is closed after it."""

    folder: Path
    configuration: Plain = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    held: ExitStack = field(default_factory=ExitStack)

    @property
    def root(self) -> Path:
        """The agent's root directory."""
        return self.folder / "root"


def refused(name: str, made: str, *says: str, rule: Rule = Rule.START_REFUSED, quick: bool = False) -> Trouble:
    """A start that ends with an error that has these words."""
    return Trouble(name=name, made=made, rule=rule, says=says, quick=quick)


def unknown_flag(start: Start) -> None:
    start.flags.append("--no-such-flag")


def wrong_value(start: Start) -> None:
    start.configuration |= {"maxPods": "many"}


def several_values(start: Start) -> None:
    start.configuration |= {"healthzPort": 99999, "imageGCHighThresholdPercent": 150}


def port_in_use(start: Start) -> None:
    taken = start.held.enter_context(socket.create_server(("127.0.0.1", 0)))
    start.configuration |= {"port": taken.getsockname()[1]}


def no_certificate(start: Start) -> None:
    start.configuration |= {"tlsCertFile": "/nowhere/tls.crt", "tlsPrivateKeyFile": "/nowhere/tls.key"}


def no_client_ca(start: Start) -> None:
    start.configuration |= {
        "authentication": {"x509": {"clientCAFile": "/nowhere/ca.crt"}, "webhook": {"enabled": False}}
    }


def broken_certificate(start: Start) -> None:
    for name in ("tls.crt", "tls.key"):
        (start.folder / name).write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    files = {"tlsCertFile": str(start.folder / "tls.crt"), "tlsPrivateKeyFile": str(start.folder / "tls.key")}
    start.configuration |= files


def no_kubeconfig(start: Start) -> None:
    start.flags += ["--kubeconfig", str(start.folder / "none")]


def broken_kubeconfig(start: Start) -> None:
    (start.folder / "kubeconfig").write_text("apiVersion: v1\nkind: Config\n")
    start.flags += ["--kubeconfig", str(start.folder / "kubeconfig")]


def root_in_the_way(start: Start) -> None:
    (start.root / "pods").write_text("")


def disk_full(start: Start) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(start.root)], check=True)
    start.held.callback(subprocess.run, ["umount", "-l", str(start.root)], check=True)
    (start.root / "glasslet").mkdir()
    (start.root / "glasslet" / "start.json").write_text("x" * 4000)
    with contextlib.suppress(OSError), (start.root / "full").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def inodes_gone(start: Start) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=6", "tmpfs", str(start.root)], check=True)
    start.held.callback(subprocess.run, ["umount", "-l", str(start.root)], check=True)
    (start.root / "glasslet").mkdir()
    for name in ("glasslet/start.json", "one", "two"):
        (start.root / name).write_text("x")


def too_much_reserved(start: Start) -> None:
    start.configuration |= {"systemReserved": {"memory": "900Ti"}}


def no_runtime(start: Start) -> None:
    start.configuration |= {"containerRuntimeEndpoint": f"unix://{start.folder}/root/none.sock"}


def bad_endpoint(start: Start) -> None:
    start.configuration |= {"containerRuntimeEndpoint": "ftp://somewhere"}


ROWS: dict[Trouble, Callable[[Start], None]] = {
    refused("start-flag", "an unknown flag", "no-such-flag", quick=True): unknown_flag,
    refused("start-type", "a field of the configuration has a value of another type", "maxPods"): wrong_value,
    refused("start-values", "two fields of the configuration have values that are not allowed", "and 1 more")
    : several_values,
    refused("start-port", "the kubelet's port is in use", "port ", "is in use by ", quick=True): port_in_use,
    refused("start-no-certificate", "the serving certificate does not exist", "/nowhere/tls.crt"): no_certificate,
    refused("start-no-ca", "the CA file for clients does not exist", "/nowhere/ca.crt"): no_client_ca,
    refused("start-certificate", "the serving certificate is damaged", "tls.crt", "is damaged or no PEM file")
    : broken_certificate,
    refused("start-no-kubeconfig", "the kubeconfig does not exist", "/none"): no_kubeconfig,
    refused("start-kubeconfig", "the kubeconfig names no cluster", "names none of its contexts"): broken_kubeconfig,
    refused("start-root", "a file is where the agent keeps a folder", "in the way", "root/pods"): root_in_the_way,
    refused("start-disk", "the disk of the root directory is full", "no space is left on the disk"): disk_full,
    refused("start-inodes", "the disk of the root directory has no inode left", "no inode is left on the disk")
    : inodes_gone,
    refused("start-reserved", "more memory is reserved than there is", "921600 GiB reserved"): too_much_reserved,
    refused("start-endpoint", "the runtime's endpoint is no address", "containerRuntimeEndpoint"): bad_endpoint,
}  # fmt: skip
WAITS = refused(
    "start-runtime",
    "the runtime's socket does not exist",
    "the agent is starting", "root/none.sock",
    rule=Rule.AGENT_STARTING,
)  # fmt: skip
KILLED = refused("agent-killed", "the agent was killed", "no agent runs", "died", rule=Rule.AGENT_STOPPED)
ENDED = refused("agent-ended", "the agent was ended by TERM", "it was ended by a signal", rule=Rule.AGENT_STOPPED)
TROUBLES = (*ROWS, WAITS, KILLED, ENDED)


@contextmanager
def process(start: Start) -> Iterator[subprocess.Popen[str]]:
    """The agent, started."""
    plain = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "healthzPort": free_port(),
        "port": free_port(),
        "address": "127.0.0.1",
        "failSwapOn": False,
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "authentication": {"webhook": {"enabled": False}, "anonymous": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        **start.configuration,
    }
    (start.folder / "config.yaml").write_text(yaml.safe_dump(plain))
    words = [sys.executable, "-m", "glasslet.kubelet", "--config", str(start.folder / "config.yaml")]
    words += ["--root-dir", str(start.root), "--cert-dir", str(start.folder / "pki"), "--hostname-override", "node-a"]
    with start.held, subprocess.Popen([*words, *start.flags], stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


@pytest.fixture
def start(containerd: PrivateContainerd, tmp_path: Path) -> Start:
    (tmp_path / "root").mkdir()
    return Start(tmp_path, {"containerRuntimeEndpoint": containerd.endpoint})


def verdict_of(start: Start) -> Plain:
    return to_plain(node_offline(start.root, datetime.now(UTC)))


@each_chosen(tuple(ROWS))
def test_a_refused_start_says_why_at_once_and_afterwards(start: Start, trouble: Trouble) -> None:
    ROWS[trouble](start)
    with process(start) as running:
        _, said = running.communicate(timeout=60)
        verdict = verdict_of(start)
    assert running.returncode == 1
    assert fits(trouble, verdict), (verdict, said[-2000:])
    judge(trouble, verdict, has_run=False)
    last = [line for line in said.splitlines() if '"command failed"' in line][-1]
    assert all(words in last.replace("\\\\", "") for words in trouble.says if words != "and 1 more"), last


def until_fits(start: Start, trouble: Trouble) -> None:
    until = time.monotonic() + 60
    while not fits(trouble, verdict := verdict_of(start)):
        assert time.monotonic() < until, verdict
        time.sleep(0.1)
    judge(trouble, verdict, has_run=False)


@pytest.mark.skipif(WAITS not in chosen(TROUBLES), reason="on purpose: made by scripts/test-troubles")
def test_a_start_that_waits_and_how_it_ended_are_told_apart(start: Start) -> None:
    no_runtime(start)
    with process(start) as running:
        until_fits(start, WAITS)
        running.kill()
        running.wait()
        until_fits(start, KILLED)
    with process(start) as running:
        until_fits(start, WAITS)
        running.terminate()
        running.wait(30)
        until_fits(start, ENDED)
