"""One machine in qemu: switched on and off, and commands in it over ssh.

    off ── start ──▶ booting ── answers ──▶ up ── power_off, cut_power ──▶ off
                        ▲                   │
                        └────── reset ──────┘

Without KVM; it ends with the process that started it, as all of them share a namespace of processes
(`scripts/test-machine`).
"""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.machine.image import GATEWAY, MACHINE_IP, Image

TAP = "tap0"
BOOT_SECONDS = 300.0
"""Fifteen to thirty of them on a machine with nothing else to do."""
_KERNEL = (
    "root=/dev/vda rw console=ttyS0 net.ifnames=0 systemd.unified_cgroup_hierarchy=1 psi=1 mitigations=off panic=5"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """`memory` and `swap` in MiB; `huge_pages`: of 2 MiB, taken at the boot."""

    processors: int = 2
    memory: int = 3072
    swap: int = 512
    huge_pages: int = 16


class CommandFailed(AssertionError):
    """A command in the machine ended with another code than 0."""


class Machine:
    """`disk`: a qcow2 file that it writes to. `folder`, a short path: sockets and logs."""

    def __init__(self, image: Image, disk: Path, folder: Path, hardware: Hardware) -> None:
        self.console = folder / "console.log"
        self._image = image
        self._disk = disk
        self._folder = folder
        self._hardware = hardware
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Switches it on and waits until systemd has started what it was to start."""
        swap = self._folder / "swap"
        with swap.open("wb") as file:
            file.truncate(self._hardware.swap * 2**20)
        subprocess.run(["mkswap", "-q", "-L", "swap", str(swap)], check=True, capture_output=True)
        with (self._folder / "qemu.log").open("ab") as log:
            self._process = subprocess.Popen(self._command(swap), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wait_until_up()
        self.run("swapon -L swap")

    def _command(self, swap: Path) -> list[str]:
        hardware = self._hardware
        drive = "format={},if=virtio,cache=unsafe,file={}"
        return [
            *("qemu-system-x86_64", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max", "-machine", "pc"),
            *("-smp", str(hardware.processors), "-m", str(hardware.memory), "-nodefaults", "-display", "none"),
            *("-kernel", str(self._image.kernel), "-initrd", str(self._image.initrd)),
            *("-append", f"{_KERNEL} hugepages={hardware.huge_pages}"),
            *("-drive", drive.format("qcow2", self._disk), "-drive", drive.format("raw", swap)),
            *("-netdev", f"tap,id=uplink,ifname={TAP},script=no,downscript=no"),
            *("-device", "virtio-net-pci,netdev=uplink", "-device", "virtio-rng-pci"),
            *("-serial", f"file:{self.console}", "-qmp", f"unix:{self._folder / 'qmp'},server,nowait"),
        ]

    @property
    def on(self) -> bool:
        """Whether it has power."""
        return self._process is not None and self._process.poll() is None

    def wait_until_up(self, seconds: float = BOOT_SECONDS) -> None:
        """Until systemd has no more jobs of the boot."""
        self._forget_connection()
        wait_until(lambda: self._starts_nothing(), seconds, f"systemd to be up ({self._end_of_console()})")

    def _starts_nothing(self) -> bool:
        assert self.on, f"the machine is off: {self._end_of_console()}"
        done = self._ssh("systemctl is-system-running", 20)
        return done.stdout.decode().strip() in ("running", "degraded")

    def run(self, command: str, *, stdin: bytes = b"", seconds: float = 120.0) -> str:
        """The output of a shell line. Raises CommandFailed."""
        done = self._ssh(command, seconds, stdin)
        if done.returncode:
            raise CommandFailed(f"{command}: code {done.returncode}: {(done.stdout + done.stderr).decode()}")
        return done.stdout.decode()

    def succeeds(self, command: str, seconds: float = 60.0) -> bool:
        """Whether a shell line ends with 0."""
        return self._ssh(command, seconds).returncode == 0

    def write(self, path: str, text: str | bytes) -> None:
        """A file, with the folders that it needs; appears at once."""
        name = shlex.quote(path)
        data = text.encode() if isinstance(text, str) else text
        line = f'mkdir -p "$(dirname {name})" && cat >{name}.new~ && mv {name}.new~ {name}'
        self.run(line, stdin=data, seconds=300)

    def read(self, path: str) -> str:
        """A file's text."""
        return self.run(f"cat {shlex.quote(path)}")

    def power_off(self, seconds: float = 200.0) -> float:
        """As an administrator does; how long it took."""
        began = time.monotonic()
        self._ssh("systemctl poweroff", 30)
        wait_until(lambda: not self.on, seconds, f"the machine to be off ({self._end_of_console()})")
        return time.monotonic() - began

    def reset(self) -> None:
        """As the button does, or a power cut that ends at once."""
        self._monitor("system_reset")
        # Until the network is gone the old system may still answer.
        time.sleep(2)
        self.wait_until_up()
        self.run("swapon -L swap")

    def cut_power(self) -> None:
        """Off at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._forget_connection()

    def _ssh(self, command: str, seconds: float, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        options = {
            "IdentityFile": self._image.key,
            "UserKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "no",
            "LogLevel": "ERROR",
            "BatchMode": "yes",
            "ConnectTimeout": 10,
            "ControlMaster": "auto",
            "ControlPersist": "yes",
            "ControlPath": self._folder / "ssh",
            "ServerAliveInterval": 15,
        }
        arguments = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        whole = ["ssh", "-F", "none", *arguments, f"root@{MACHINE_IP}", "--", command]
        try:
            # A master that stays behind would keep a pipe for errors open.
            with (self._folder / "ssh.err").open("w+b") as errors:
                done = subprocess.run(whole, input=stdin, stdout=subprocess.PIPE, stderr=errors, timeout=seconds)
                errors.seek(0)
                return subprocess.CompletedProcess(whole, done.returncode, done.stdout, errors.read())
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(whole, 255, b"", f"no end within {seconds} s".encode())

    def _forget_connection(self) -> None:
        subprocess.run(
            ["ssh", "-o", f"ControlPath={self._folder / 'ssh'}", "-O", "exit", "machine"],
            check=False,
            capture_output=True,
        )
        (self._folder / "ssh").unlink(missing_ok=True)

    def _monitor(self, command: str) -> Any:
        """Over qemu's machine protocol (QMP)."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as sock, sock.makefile("rw") as lines:
            sock.connect(str(self._folder / "qmp"))
            lines.readline()
            for name in ("qmp_capabilities", command):
                lines.write(json.dumps({"execute": name}) + "\n")
                lines.flush()
                answer = json.loads(lines.readline())
        return answer

    def _end_of_console(self) -> str:
        text = self.console.read_text(errors="replace") if self.console.exists() else ""
        return "\n".join(text.splitlines()[-5:])


def wait_until(happened: Callable[[], object], seconds: float, what: str) -> None:
    """Asks four times a second. Raises AssertionError."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.25)


def connect_uplink() -> None:
    """The tap that machines are plugged into; its address is the gateway's. For a network of one's own alone."""
    if subprocess.run(["ip", "link", "show", TAP], check=False, capture_output=True).returncode == 0:
        return
    for line in (
        f"ip tuntap add {TAP} mode tap",
        f"ip address add {GATEWAY}/24 dev {TAP}",
        f"ip link set {TAP} up",
    ):
        subprocess.run(line.split(), check=True)
