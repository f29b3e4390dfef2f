"""The machine's disk, kernel and initrd, from Debian's packages. Made once, kept below the cache, never written again.

A disk with the package under test is a layer above it (`tests/machine/node.py`); every run writes
to a layer of its own.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.fakes.containerd import PAUSE, images_script, write_test_images

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glasslet" / "machine"
NODE = "node-a"
MACHINE_IP, GATEWAY, POD_SUBNET = "198.18.7.2", "198.18.7.1", "10.107.0.0/24"
_SIZE = "10G"
_TOOLS = {
    "debootstrap": "debootstrap",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mke2fs": "e2fsprogs",
    "ssh": "openssh-client",
    "ip": "iproute2",
}
_PACKAGES = (
    *("linux-image-cloud-amd64", "initramfs-tools", "systemd", "systemd-sysv", "udev", "dbus", "libpam-systemd"),
    *("containerd", "runc", "containernetworking-plugins", "iptables", "mount", "iproute2", "openssh-server", "kmod"),
    *("procps", "python3", "ca-certificates", "util-linux", "conntrack"),
)
_KERNEL_FILES = {
    # A node that schedules pods routes between them.
    "etc/modules-load.d/node.conf": "overlay\nbr_netfilter\nveth\nnf_conntrack\nbutton\n",
    "etc/sysctl.d/50-node.conf": "net.ipv4.ip_forward=1\nnet.bridge.bridge-nf-call-iptables=1\n",
    # Only what leads to the disk: an initrd with every driver takes longer to unpack than the rest of the boot.
    "etc/initramfs-tools/modules": "virtio_pci\nvirtio_blk\n",
    "etc/initramfs-tools/conf.d/small": "MODULES=list\nCOMPRESS=gzip\nFSTYPE=ext4\n",
    "etc/fstab": "/dev/vda / ext4 noatime 0 0\n",
}
_SYSTEM_FILES = {
    "etc/hostname": f"{NODE}\n",
    "etc/hosts": f"127.0.0.1 localhost\n{MACHINE_IP} {NODE}\n",
    "etc/resolv.conf": "nameserver 127.0.0.1\n",
    "etc/machine-id": hashlib.sha256(NODE.encode()).hexdigest()[:32] + "\n",
    "etc/systemd/network/uplink.network": (
        f"[Match]\nName=eth0\n[Network]\nAddress={MACHINE_IP}/24\nGateway={GATEWAY}\nIPv6AcceptRA=no\n"
    ),
    "etc/systemd/journald.conf.d/keep.conf": "[Journal]\nStorage=persistent\nSystemMaxUse=50M\n",
    # Without KVM everything takes about ten times as long.
    "etc/systemd/system.conf.d/slow.conf": "[Manager]\nDefaultTimeoutStartSec=600\nDefaultTimeoutStopSec=60\n",
    # A log-in that registers with logind would start a manager for its user each time.
    "etc/ssh/sshd_config.d/tests.conf": "UsePAM no\nUseDNS no\nMaxSessions 40\n",
}
_RUNTIME_FILES = {
    "etc/containerd/config.toml": f"""
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
""",
    "etc/cni/net.d/10-pods.conflist": (
        '{"cniVersion": "0.4.0", "name": "pods", "plugins": ['
        '{"type": "bridge", "bridge": "pods0", "isDefaultGateway": true, "ipam": '
        f'{{"type": "host-local", "ranges": [[{{"subnet": "{POD_SUBNET}"}}]]}}}},'
        '{"type": "portmap", "capabilities": {"portMappings": true}}]}\n'
    ),
}
_FILES = {**_KERNEL_FILES, **_SYSTEM_FILES, **_RUNTIME_FILES}
_ENABLED = ("systemd-networkd", "ssh", "containerd")
_MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap"),
    *("fstrim.timer", "getty@tty1", "serial-getty@ttyS0", "systemd-networkd-wait-online", "systemd-timesyncd"),
)


class Image(NamedTuple):
    """Files of one built machine. `key`: the private key that its root lets in."""

    kernel: Path
    initrd: Path
    disk: Path
    key: Path


def missing_requirement() -> str | None:
    """What is missing to build and run the machine, in words; None when nothing is."""
    if os.geteuid() != 0:
        return "a machine needs root"
    if platform.machine() != "x86_64":
        return "the machine is of x86_64, as this one would have to be"
    for program, package in _TOOLS.items():
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: apt-get install {package})"
    return None


def build() -> Image:
    """Makes it, unless it is there. Two or three minutes, from the Debian mirror that this machine uses."""
    folder = CACHE / _fingerprint()
    image = Image(folder / "vmlinuz", folder / "initrd.img", folder / "disk.img", folder / "key")
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(image.key)], check=True)
        with tempfile.TemporaryDirectory(dir=folder) as name:
            root = Path(name) / "root"
            _bootstrap(root, folder / "debootstrap.log")
            _furnish(root, image.key.with_suffix(".pub").read_text())
            _take_kernel(root, image)
            _write_disk(root, image.disk)
        (folder / "complete").touch()
    return image


def _fingerprint() -> str:
    """Of what is put on the disk; the mirror's state is that of the first build."""
    chosen = repr((_PACKAGES, sorted(_FILES.items()), _ENABLED, _MASKED, _SIZE))
    return hashlib.sha256(chosen.encode() + Path(str(images_script().__file__)).read_bytes()).hexdigest()[:16]


def _mirror() -> str:
    """The first one that apt uses here."""
    listed = (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*")))
    address = re.compile(r"^(?:URIs:|deb(?: \[.*?\])?)\s+(\S+)", re.MULTILINE)
    for path in listed:
        if path.is_file() and (found := address.search(path.read_text())):
            return found[1]
    return "http://deb.debian.org/debian"


def _bootstrap(root: Path, log: Path) -> None:
    command = ("debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", "bookworm", str(root), _mirror())
    with log.open("wb") as output:
        subprocess.run(command, check=True, stdout=output, stderr=output)


def _furnish(root: Path, public_key: str) -> None:
    for name, text in {**_FILES, "root/.ssh/authorized_keys": public_key}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
    (root / "root/.ssh").chmod(0o700)
    (root / "var/log/journal").mkdir(exist_ok=True)
    write_test_images(root / "root/images.tar")
    _inside(root, "systemctl", "--quiet", "enable", *_ENABLED)
    _inside(root, "systemctl", "--quiet", "mask", *_MASKED)
    for waste in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(root / waste, ignore_errors=True)


def _take_kernel(root: Path, image: Image) -> None:
    with _processes_visible(root):
        _inside(root, "update-initramfs", "-u", "-k", "all")
    (kernel,) = (root / "boot").glob("vmlinuz-*")
    (initrd,) = (root / "boot").glob("initrd.img-*")
    shutil.copy(kernel, image.kernel)
    shutil.move(initrd, image.initrd)


@contextmanager
def _processes_visible(root: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(root / "proc")], check=True)


def _write_disk(root: Path, disk: Path) -> None:
    with disk.open("wb") as file:
        file.truncate(int(_SIZE.removesuffix("G")) * 2**30)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-L", "root", "-d", str(root), str(disk)], check=True)


def _inside(root: Path, *command: str) -> None:
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    subprocess.run(["chroot", str(root), *command], check=True, env=environment, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    if (_missing := missing_requirement()) is not None:
        raise SystemExit(f"tests.machine.image: {_missing}")
    build()
