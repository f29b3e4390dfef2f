"""The whole agent as a process, on a private containerd: started, asked, killed, started again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from glasslet.devices.registration import FOLDER_VARIABLE
from glasslet.host.kernel_settings import LEAVE_MACHINE
from tests.fakes.containerd import BUSYBOX, PrivateContainerd, unmount_below

NODE = "node-a"


def free_port() -> int:
    """A TCP port on loopback that nobody listens on, below those that the kernel gives to outgoing connections: it is
    still free when it is used. None is given twice."""
    while True:
        port = random.randrange(10_000, 32_768)
        if port in _given:
            continue
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            _given.add(port)
            return port


_given: set[int] = set()
FOR_EVER = "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"
Rows = dict[str, dict[str, Any]]
"""Answers of `glasslet ps -o json`, by pod name without the node's."""


def busybox_pod(name: str, command: str = FOR_EVER, **spec: Any) -> dict[str, Any]:
    """A manifest with one busybox container `main` that runs a shell command."""
    main = {"name": "main", "image": BUSYBOX, "command": ["sh", "-c", command]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 2, "containers": [main], **spec},
    }


class Agent:
    """One agent's folder, ports and process. The folder must be short: a Unix socket lives in it."""

    def __init__(self, folder: Path, runtime: PrivateContainerd, **configuration: Any) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.manifests = folder / "manifests"
        self.logs = folder / "logs"
        self.log = folder / "agent.log"
        self.device_plugins = folder / "device-plugins"
        """Instead of the folder that all agents of a machine would share."""
        self.healthz_port, self.port = free_port(), free_port()
        self.program: tuple[str, ...] = (sys.executable, "-m", "glasslet.kubelet")
        self.flags: tuple[str, ...] = ()
        """More of the command line."""
        self.environment: dict[str, str] = {}
        """Beside this process's own."""
        self._runtime = runtime
        self._process: subprocess.Popen[bytes] | None = None
        self.manifests.mkdir(parents=True)
        self._write_configuration(configuration)

    def start(self) -> None:
        """Starts the process; does not wait for anything."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(*self.program, "--config", str(self.folder / "config.yaml"), "--root-dir", str(self.root)),
                    *("--cert-dir", str(self.root / "pki"), "--hostname-override", NODE),
                    *self.flags,
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self._shares_machine(), **self.environment},
            )

    def _shares_machine(self) -> dict[str, str]:
        """Agents of tests change nothing that others of the machine would see."""
        return {FOLDER_VARIABLE: str(self.device_plugins), LEAVE_MACHINE: "true"}

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """As a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def terminate(self) -> int:
        """As a service manager; gives the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(120)
        self._process = None
        return code

    def exit_code(self) -> int | None:
        """None while it runs."""
        assert self._process is not None
        return self._process.poll()

    def wait_for_exit(self, seconds: float = 120.0) -> int:
        """The exit code of an agent that ends by itself."""
        assert self._process is not None
        code = self._process.wait(seconds)
        self._process = None
        return code

    def put(self, manifest: dict[str, Any] | str | bytes, name: str = "") -> float:
        """Places a manifest at once, as `mv` does; gives the wall time of that."""
        name = name or (f"{manifest['metadata']['name']}.yaml" if isinstance(manifest, dict) else "manifest.yaml")
        data = yaml.safe_dump(manifest).encode() if isinstance(manifest, dict) else manifest
        hidden = self.folder / f".{name}"
        hidden.write_bytes(data.encode() if isinstance(data, str) else data)
        now = time.time()
        hidden.rename(self.manifests / name)
        return now

    def remove(self, name: str) -> None:
        """Takes a manifest away."""
        (self.manifests / f"{name}.yaml").unlink()

    async def ask(self, path: str) -> Any:
        """An answer of `/glass/v1/...` over the local socket."""
        connector = aiohttp.UnixConnector(path=str(self.root / "glasslet.sock"))
        async with aiohttp.ClientSession(connector=connector) as session, session.get(f"http://glass{path}") as answer:
            answer.raise_for_status()
            return json.loads(await answer.read())

    async def pods(self) -> Rows:
        """Rows of all pods; none while the agent does not answer."""
        try:
            rows = (await self.ask("/glass/v1/pods")).get("pods", [])
        except (aiohttp.ClientError, OSError):
            return {}
        return {row["name"].removesuffix(f"-{NODE}"): row for row in rows}

    async def wait_until_ready(self, seconds: float = 120.0) -> None:
        """Asks until the agent says that it is."""
        async with asyncio.timeout(seconds):
            while not await self._ready():
                await asyncio.sleep(0.05)

    async def _ready(self) -> bool:
        try:
            return bool((await self.ask("/glass/v1/agent")).get("ready"))
        except (aiohttp.ClientError, OSError):
            return False

    async def wait_for(self, what: Callable[[Rows], bool], seconds: float = 120.0, every: float = 0.05) -> Rows:
        """Asks until the pods are as wanted; the rows then. Raises AssertionError with what is there instead."""
        deadline = time.monotonic() + seconds
        while True:
            rows = await self.pods()
            if what(rows):
                return rows
            if time.monotonic() > deadline:
                raise AssertionError(f"not in {seconds} s: {json.dumps(rows, indent=1)}\n{self.tail_of_log()}")
            await asyncio.sleep(every)

    def tail_of_log(self, lines: int = 30) -> str:
        """The end of the agent's log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def own_files(self) -> Iterator[tuple[Path, bytes]]:
        """Its log and all that it keeps below its root directory's own folder, but for what goes meanwhile."""
        yield self.log, self.log.read_bytes()
        for folder, _, names in os.walk(self.root / "glasslet"):
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    yield path, path.read_bytes()

    def log_links(self) -> list[Path]:
        """The links for log collectors to logs of its containers: they are in one place for the whole machine."""
        found = []
        for link in Path("/var/log/containers").glob("*.log"):
            with contextlib.suppress(OSError):
                if link.readlink().is_relative_to(self.folder):
                    found.append(link)
        return found

    def remove_log_links(self) -> None:
        """After its end, when nobody else does."""
        for link in self.log_links():
            link.unlink(missing_ok=True)

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_megabytes(self) -> float:
        """Resident memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def _write_configuration(self, extra: dict[str, Any]) -> None:
        resolv_conf = self.folder / "resolv.conf"
        resolv_conf.write_text("nameserver 127.0.0.1\n")
        configuration = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": self._runtime.endpoint,
            "staticPodPath": str(self.manifests),
            "podLogsDir": str(self.logs),
            "healthzPort": self.healthz_port,
            "port": self.port,
            "address": "127.0.0.1",
            "resolvConf": str(resolv_conf),
            "failSwapOn": False,
            # The machine has one tree of cgroups for all agents that tests run: who wants some says where of its own.
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            # No test is about the room that the machine has left, but those that say so.
            "evictionHard": {"memory.available": "0%"},
            "authentication": {"webhook": {"enabled": False}, "anonymous": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            **extra,
        }
        (self.folder / "config.yaml").write_text(yaml.safe_dump(configuration))


@contextlib.contextmanager
def agent_on(runtime: PrivateContainerd, folder: Path, **configuration: Any) -> Iterator[Agent]:
    """A running agent; at the end it and its pods are gone."""
    agent = Agent(folder, runtime, **configuration)
    with running(agent, runtime):
        yield agent


@contextlib.contextmanager
def running(agent: Agent, runtime: PrivateContainerd) -> Iterator[None]:
    """The agent runs meanwhile; at the end it and its pods are gone."""
    agent.start()
    try:
        yield
    finally:
        agent.kill()
        runtime.remove_all_pods()
        unmount_below(agent.folder)
        agent.remove_log_links()
