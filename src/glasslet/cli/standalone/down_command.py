"""`glasslet down`: removes the pods of `up`, its agent and its containerd."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import click

from glasslet.answers.pods import PodsAnswer
from glasslet.cli.failure import Failure, NotInTime
from glasslet.cli.options import state_option
from glasslet.cli.output import write
from glasslet.cli.standalone import manifests, processes
from glasslet.cli.standalone.agent_process import AgentOptions, AgentProcess
from glasslet.cli.standalone.box_process import BoxProcess
from glasslet.cli.standalone.private_containerd import PrivateContainerd
from glasslet.cli.standalone.state_dir import StateDir

_STOP_SECONDS = 15.0
_MNT_DETACH = 2
_OCTAL = re.compile(rb"\\([0-7]{3})")


@click.command("down")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@state_option
@click.option(
    "--timeout",
    metavar="SECONDS",
    default=90,
    type=click.FloatRange(min=0),
    show_default=True,
    help="Seconds that pods may take to end.",
)
@click.option("--volumes", is_flag=True, help="Remove the folders of claims too, with all data in them.")
@click.option("--purge", is_flag=True, help="Remove the state folder too, with claims, images, logs and records.")
def command(state: Path, paths: tuple[str, ...], timeout: float, volumes: bool, purge: bool) -> None:
    """Remove all pods of `up`, its agent, and the private containerd; with PATH, only what these files hold.

    Pods get their grace period. Claims, images, logs and records stay for the next `up`, unless --volumes or --purge is
    given.
    """
    if os.geteuid() != 0:
        raise Failure("only root can remove pods; use sudo")
    where = StateDir(state)
    if paths:
        if volumes:
            raise Failure("--volumes: only without PATH; claims of a file stay until all is removed")
        removed = manifests.remove(where.manifests, paths, BoxProcess(where)) if where.manifests.is_dir() else 0
        if not removed:
            raise Failure(f"PATH: none of {', '.join(paths)} runs here")
        write(f"{removed} manifests removed; see `glasslet ps`")
        return
    take_down(where, seconds=timeout, volumes=volumes, purge=purge)


def take_down(state: StateDir, *, seconds: float, volumes: bool, purge: bool) -> None:
    """All of `down`, in order: controllers, pods, agent, runtime, mounts, network, files."""
    runtime = state.recall()
    containerd = PrivateContainerd(state, sandbox_image="")
    agent, box = AgentProcess(state), BoxProcess(state)
    services = box.sources.services
    box.stop()
    manifests.clear(state.manifests)
    if runtime is not None and (not runtime.private or containerd.running() is not None):
        _end_pods(state, agent, runtime.endpoint, seconds=seconds)
    agent.stop()
    if containerd.folder.is_dir():
        _end_containerd(state, containerd)
    unmounted = _unmount_below(state.path) + _unmount_below(state.run)
    _remove_bridge(containerd.bridge)
    _remove_addresses(services)
    for folder in (state.run, state.box, state.objects):
        shutil.rmtree(folder, ignore_errors=True)
    state.forget()
    if volumes:
        shutil.rmtree(state.claims, ignore_errors=True)
    if purge:
        if _mounts_below(state.path):
            raise Failure(f"{state.path} is kept: something is still mounted below it")
        shutil.rmtree(state.path, ignore_errors=True)
    note = f", {unmounted} left-over mounts unmounted" if unmounted else ""
    write(f"everything is removed{note}" if runtime is not None else f"nothing ran at {state.path}{note}")


def _end_pods(state: StateDir, agent: AgentProcess, endpoint: str, *, seconds: float) -> None:
    """The agent ends them, each with its grace period, because no manifest is left."""
    if agent.running() is None or not agent.client.answers():
        state.make()
        agent.start(AgentOptions(endpoint=endpoint, manifests=state.manifests, port=0, healthz_port=0))
    until = time.monotonic() + seconds
    shown: set[str] = set()
    while True:
        pods = agent.client.get("/pods", PodsAnswer).pods
        facts = agent.facts()
        for row in pods:
            if row.uid not in shown:
                shown.add(row.uid)
                write(f"ending {row.namespace}/{row.name}")
        if facts.ready and not pods and not facts.runtime_pods:
            return
        if time.monotonic() > until:
            left = ", ".join(f"{row.namespace}/{row.name}" for row in pods) or f"{facts.runtime_pods} in the runtime"
            raise NotInTime(f"pods are left after {seconds:g} s: {left}; see `glasslet why`, or try again")
        time.sleep(0.1)


def _end_containerd(state: StateDir, containerd: PrivateContainerd) -> None:
    """Ends the private containerd, and shims that are left."""
    if (pid := containerd.running()) is not None:
        processes.stop(pid, seconds=_STOP_SECONDS)
    containerd.pid_file.unlink(missing_ok=True)
    for shim in processes.all_with(f"-address {containerd.socket}"):
        processes.stop(shim, seconds=2.0)


def _mounts_below(folder: Path) -> list[str]:
    """Mount points below a folder, the deepest last mounted first."""
    prefix = f"{folder}/"
    points = []
    # Lines end at a newline only: the kernel escapes no other line separator in names.
    for line in Path("/proc/self/mountinfo").read_bytes().split(b"\n"):
        fields = line.split(b" ", 5)
        point = os.fsdecode(_OCTAL.sub(lambda m: bytes((int(m[1], 8) & 0xFF,)), fields[4])) if len(fields) > 5 else ""
        if point.startswith(prefix):
            points.append(point)
    return points[::-1]


def _unmount_below(folder: Path) -> int:
    points = _mounts_below(folder)
    libc = ctypes.CDLL(None, use_errno=True)
    return sum(libc.umount2(os.fsencode(point), _MNT_DETACH) == 0 for point in points)


def _remove_addresses(network: str) -> None:
    """Takes the addresses of services off the loopback interface."""
    ip = shutil.which("ip", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if ip is not None and network:
        subprocess.run([ip, "address", "flush", "dev", "lo", "to", network], capture_output=True, check=False)  # noqa: S603


def _remove_bridge(name: str) -> None:
    ip = shutil.which("ip", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if ip is not None and Path(f"/sys/class/net/{name}").exists():
        subprocess.run([ip, "link", "delete", name], capture_output=True, check=False)  # noqa: S603
