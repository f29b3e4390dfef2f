"""A private containerd for tests: own root, state, socket, bridge and subnet; nothing is left behind.

The fixture `containerd` starts one per test session, with a pause image, busybox and an image for user and environment
tests already imported. Without root or without Debian's packages it skips and says what is missing; with CI=true in the
environment that is a failure instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import ipaddress
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import pytest

from glasslet.api.object import SandboxID
from glasslet.record.recorder import Recorder
from glasslet.runtime.cri.connection import connect
from glasslet.runtime.errors import NotInRuntime, RuntimeCallError
from glasslet.runtime.model import ObservedPod
from glasslet.runtime.protocols import RuntimeService
from tests.skips import on_purpose

T = TypeVar("T")

PAUSE = "glasslet.test/pause:1"
BUSYBOX = "docker.io/library/busybox:1.36"
CONFIGURED = "glasslet.test/configured:1"
"""Busybox with USER 1234:2345, an environment of its own, an entrypoint (`echo`) and an argument (`from the image`)."""
NAMED_USER = "glasslet.test/named-user:1"
CNI_PLUGINS = ("/usr/lib/cni", "/opt/cni/bin")
REPOSITORY = Path(__file__).resolve().parents[2]
NAMESPACE = "k8s.io"
NEWER = os.environ.get("GLASSLET_TEST_CONTAINERD") == "newer"
"""Tests run on the containerd of `tests.fakes.newer_containerd` instead."""
shows_what_is_too_old = pytest.mark.skipif(
    NEWER, reason=on_purpose("what Debian's containerd lacks, the newer one has")
)


def images_script() -> ModuleType:
    """scripts/images.py as a module."""
    spec = importlib.util.spec_from_file_location("glasslet_images_script", REPOSITORY / "scripts" / "images.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def missing_requirement() -> str | None:
    """What this machine lacks to run containers, in words; None when nothing does."""
    if os.geteuid() != 0:
        return "containers need root"
    for program, package in (("containerd", "containerd"), ("ctr", "containerd"), ("runc", "runc"), ("ip", "iproute2")):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: apt-get install {package})"
    if cni_plugins() is None:
        return "the CNI plugins are not installed (Debian: apt-get install containernetworking-plugins)"
    if not Path("/bin/busybox").is_file():
        return "/bin/busybox is not installed (Debian: apt-get install busybox-static)"
    return None


def cni_plugins() -> str | None:
    """The folder of the CNI plugins."""
    return next((folder for folder in CNI_PLUGINS if Path(folder, "bridge").exists()), None)


_instances = itertools.count()


class PrivateContainerd:
    """One containerd process and what it leaves on the machine. `kill` and `start` may be called any number of times;
    containers live on meanwhile. `stop` removes everything."""

    sandbox_image = PAUSE
    programs = ""
    """The folder of containerd and all that belongs to it, before those on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket = folder / "containerd.sock"
        self.endpoint = f"unix://{self.socket}"
        self.log = folder / "containerd.log"
        number = (os.getpid() + 7919 * next(_instances)) % 0xFFFF
        self.bridge = f"glt{number:x}"
        self.subnet = _free_subnet(number)
        self._process: subprocess.Popen[bytes] | None = None
        self._snapshotter = _snapshotter(folder)
        self._networks = self.folder / "net.d"
        self._write_configuration()

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Starts it and waits until it and its CRI answer. `environment`: beside this process's own."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program("containerd"), "--config", str(self.folder / "config.toml")],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PATH": self._path(), **(environment or {})},
            )
        deadline = time.monotonic() + 120
        while self._ctr("version", check=False).returncode != 0 or not self._elsewhere(_is_initialized(self.endpoint)):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"containerd does not come up:\n{self.tail_of_log()}")
            time.sleep(0.05)

    def kill(self) -> None:
        """As a crash: the process is gone at once, its containers go on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def import_images(self, archive: Path) -> None:
        """Makes the images of an OCI archive known."""
        self._ctr("images", "import", "--snapshotter", self._snapshotter, str(archive))

    def image_names(self) -> set[str]:
        """Names of all images that are there."""
        return set(self._ctr("images", "ls", "-q").stdout.split())

    def remove_images(self, prefix: str) -> None:
        """Removes images whose names begin so."""
        for name in self.image_names():
            if name.startswith(prefix):
                self._ctr("images", "rm", "--sync", name, check=False)

    def kill_task(self, task: str) -> None:
        """Kills a container's (or sandbox's) main process behind the runtime's back."""
        self._ctr("tasks", "kill", "-s", "SIGKILL", task)

    def pids(self) -> dict[str, int]:
        """The main process of every container and sandbox that runs, by ID."""
        rows = [line.split() for line in self._ctr("tasks", "ls").stdout.splitlines()[1:]]
        return {row[0]: int(row[1]) for row in rows if row[2] == "RUNNING"}

    def remove_all_pods(self) -> None:
        """Stops and removes every sandbox with its containers. Works inside a running loop, too."""
        self._elsewhere(_remove_all_sandboxes(self.endpoint, self._remove_task))

    def _remove_task(self, task: str) -> None:
        """Behind the CRI's back, which cannot remove a task whose start broke off in the middle."""
        self._ctr("tasks", "rm", "--force", task, check=False)

    def tail_of_log(self) -> str:
        """The last lines of containerd's log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:]) if self.log.exists() else ""

    def stop(self) -> None:
        """Ends every container, shim and the daemon; removes mounts, network namespaces, the bridge and all files."""
        namespaces = self._network_namespaces()
        if self._process is None:
            with contextlib.suppress(RuntimeError, OSError):
                self.start()
        with contextlib.suppress(Exception):  # the daemon may be beyond asking; what follows needs no answers
            self._elsewhere(_remove_all_sandboxes(self.endpoint, self._remove_task))
        for task in self._ctr("tasks", "ls", "-q", check=False).stdout.split():
            self._remove_task(task)
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            self.kill()
        self._end_shims()
        unmount_below(self.folder)
        for namespace in namespaces:
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", self.bridge], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _elsewhere(self, body: Coroutine[Any, Any, T]) -> T:
        """In a loop of its own: this thread may have one that runs."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, body).result()

    def _network_namespaces(self) -> list[str]:
        """Names of the namespaces of our sandboxes, from containerd's own notes on them."""
        found = []
        for container in self._ctr("containers", "ls", "-q", check=False).stdout.split():
            info = self._ctr("containers", "info", "--spec", container, check=False).stdout
            with contextlib.suppress(ValueError, AttributeError):
                spaces = json.loads(info).get("linux", {}).get("namespaces", [])
                found += [Path(s["path"]).name for s in spaces if s["type"] == "network" and s.get("path")]
        return [name for name in dict.fromkeys(found) if name.startswith("cni-")]

    def _end_shims(self) -> None:
        """Shims carry our socket on their command line; their containers are dead by now."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().split(b"\0")
                if b"containerd-shim" in command[0] and str(self.socket).encode() in command:
                    os.kill(int(entry.name), signal.SIGKILL)

    def _ctr(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [
            self._program("ctr"),
            "--address",
            str(self.socket),
            "--connect-timeout",
            "2s",
            "-n",
            NAMESPACE,
            *arguments,
        ]
        return subprocess.run(command, check=check, capture_output=True, text=True, timeout=180)

    def _path(self) -> str:
        return os.pathsep.join(filter(None, (self.programs, os.environ["PATH"])))

    def _program(self, name: str) -> str:
        return shutil.which(name, path=self._path()) or name

    def _write_configuration(self) -> None:
        self._networks.mkdir()
        (self._networks / "10-test.conflist").write_text(json.dumps(self._network()))
        (self.folder / "config.toml").write_text(self._configuration())

    def _configuration(self) -> str:
        return f"""
version = 2
root = "{self.folder}/root"
state = "{self.folder}/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
]
[grpc]
  address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{self.sandbox_image}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "{self._snapshotter}"
  default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  Root = "{self.folder}/runc"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{cni_plugins()}"
  conf_dir = "{self._networks}"
"""

    def _network(self) -> dict[str, object]:
        """A bridge without masquerading: pods reach each other and this machine, nothing else."""
        return {
            "cniVersion": "0.4.0",
            "name": f"glasslet-{self.bridge}",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": self.bridge,
                    "isGateway": True,
                    "ipMasq": False,
                    "hairpinMode": True,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": str(self.folder / "ipam"),
                        "ranges": [[{"subnet": self.subnet}]],
                    },
                },
                {"type": "portmap", "capabilities": {"portMappings": True}, "snat": False},
            ],
        }


class Silent:
    """A recorder and metrics that keep nothing."""

    def wait(self, *_: object, **__: object) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()

    def operation(self, *_: object) -> None:
        return


async def _is_initialized(endpoint: str) -> bool:
    """Whether the CRI answers: that comes some time after the socket does."""
    silent = Silent()
    try:
        connection = await connect(endpoint, recorder=cast(Recorder, silent), metrics=silent)
    except RuntimeCallError:
        return False
    try:
        await connection.runtime.status()
    except RuntimeCallError:
        return False
    else:
        return True
    finally:
        await connection.close()


async def _remove_all_sandboxes(endpoint: str, remove_task: Callable[[str], None], seconds: float = 180.0) -> None:
    """Through the CRI, so that networks are torn down as they were set up. Raises RuntimeError with what is left."""
    silent = Silent()
    connection = await connect(endpoint, recorder=cast(Recorder, silent), metrics=silent)
    deadline = time.monotonic() + seconds
    few = asyncio.Semaphore(4)
    try:
        while True:
            # With a shim that is just going away, or what a killed agent had asked for and is still under way, it
            # works when it is tried again.
            try:
                pods = await connection.runtime.list_pods()
                problems = await asyncio.gather(*(_remove_pod(connection.runtime, pod, few) for pod in pods))
            except RuntimeCallError as error:
                pods, problems = (), [str(error)]
            if not pods and not problems:
                return
            if any(problems):
                for pod, problem in zip(pods, problems, strict=False):
                    for container in pod.containers if "cannot delete running task" in problem else ():
                        remove_task(container.id)
                if time.monotonic() > deadline:
                    left = [pod.name for pod in pods]
                    raise RuntimeError(f"pods are left: {left}: {[one for one in problems if one]}")
                await asyncio.sleep(0.2)
    finally:
        await connection.close()


async def _remove_pod(runtime: RuntimeService, pod: ObservedPod, few: asyncio.Semaphore) -> str:
    """What did not work, "" when all did."""
    removals = [_remove_sandbox(runtime, sandbox.id) for sandbox in pod.sandboxes]
    if not pod.sandboxes:
        removals = [runtime.remove_container(container.id) for container in pod.containers]
    problem = ""
    async with few:
        for removal in removals:
            try:
                await removal
            except NotInRuntime:
                pass
            except RuntimeCallError as error:
                problem = str(error)
    return problem


async def _remove_sandbox(runtime: RuntimeService, sandbox: SandboxID) -> None:
    await runtime.stop_sandbox(sandbox)
    await runtime.remove_sandbox(sandbox)


def _free_subnet(number: int) -> str:
    """A /24 that no route of this machine touches."""
    routes = subprocess.run(["ip", "-4", "route"], check=True, capture_output=True, text=True).stdout
    used = []
    for line in routes.splitlines():
        with contextlib.suppress(ValueError, IndexError):
            used.append(ipaddress.ip_network(line.split()[0]))
    for step in range(4096):
        subnet = ipaddress.ip_network(f"10.{200 + (number + step) // 256 % 40}.{(number + step) % 256}.0/24")
        if not any(subnet.overlaps(other) for other in used if other.prefixlen > 0):
            return str(subnet)
    raise RuntimeError("no free subnet for test pods")


def _snapshotter(folder: Path) -> str:
    """overlayfs where the filesystem of the folder allows it."""
    layers = [folder / name for name in ("lower", "upper", "work", "merged")]
    for layer in layers:
        layer.mkdir()
    options = f"lowerdir={layers[0]},upperdir={layers[1]},workdir={layers[2]}"
    mounted = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", options, str(layers[3])], check=False, capture_output=True
    )
    if mounted.returncode == 0:
        subprocess.run(["umount", str(layers[3])], check=True)
    for layer in layers:
        shutil.rmtree(layer, ignore_errors=True)
    return "overlayfs" if mounted.returncode == 0 else "native"


def mounts_below(folder: Path) -> list[str]:
    """The mount points below a folder, deepest first."""
    # Bytes: a name may hold characters that end a line of text but not of the kernel's table.
    lines = Path("/proc/self/mounts").read_bytes().split(b"\n")
    points = [re.sub(rb"\\([0-7]{3})", lambda m: bytes((int(m[1], 8),)), line.split(b" ")[1]) for line in lines if line]
    return sorted((m for m in map(os.fsdecode, points) if m.startswith(f"{folder}/")), key=len, reverse=True)


def unmount_below(folder: Path) -> None:
    """Takes off every mount below a folder, deepest first."""
    for mount in mounts_below(folder):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)


@pytest.fixture(scope="session")
def containerd(request: pytest.FixtureRequest) -> Iterator[PrivateContainerd]:
    """A running private containerd: Debian's, or the newer one with GLASSLET_TEST_CONTAINERD=newer."""
    if NEWER:
        yield request.getfixturevalue("newer_containerd")
        return
    if (missing := missing_requirement()) is not None:
        pytest.skip(f"REAL CONTAINERD TESTS NOT RUN: {missing}")
    private = PrivateContainerd(Path(tempfile.mkdtemp(prefix="glt-")))
    try:
        private.start()
        import_test_images(private)
        yield private
    finally:
        private.stop()


def import_test_images(private: PrivateContainerd) -> None:
    """Makes the images of the constants above known."""
    archive = private.folder / "images.tar"
    write_test_images(archive)
    private.import_images(archive)


def write_test_images(archive: Path) -> None:
    """Writes an OCI archive of the images of the constants above."""
    script = images_script()
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    script.write_archive(
        archive,
        [
            script.pause_image((PAUSE,)),
            script.busybox_image((BUSYBOX,)),
            script.BuiltImage(
                names=(CONFIGURED,),
                entrypoint=("/bin/echo",),
                command=("from", "the", "image"),
                env=(path, "FROM_IMAGE=yes"),
                user="1234:2345",
                working_dir="/tmp",
            ),
            script.BuiltImage(names=(NAMED_USER,), command=("id",), user="nobody"),
        ],
    )
