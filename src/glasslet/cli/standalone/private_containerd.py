"""The private containerd: its data, socket and pod network are separate from any other on this machine.

It keeps running when `up` ends, because containers belong to it; the next `up` finds it again.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import socket
import subprocess
import time
import zlib
from pathlib import Path

from glasslet.cli.failure import Failure
from glasslet.cli.standalone import processes
from glasslet.cli.standalone.state_dir import StateDir

_SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CNI_FOLDERS = ("/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni")
_CNI_PLUGINS = ("bridge", "host-local", "loopback", "portmap")
_PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "CNI plugins": "containernetworking-plugins",
}
_UNUSED_SNAPSHOTTERS = [f"io.containerd.snapshotter.v1.{name}" for name in ("aufs", "btrfs", "devmapper", "zfs")]
_CAP_SYS_RESOURCE = 24
_START_SECONDS = 20.0


class PrivateContainerd:
    """The containerd of one state folder."""

    def __init__(self, state: StateDir, *, sandbox_image: str) -> None:
        self.state = state
        self.sandbox_image = sandbox_image
        self.folder = state.containerd
        self.socket = state.run / "containerd.sock"
        self.config = self.folder / "config.toml"
        self.log = self.folder / "containerd.log"
        self.pid_file = self.folder / "containerd.pid"
        self.bridge = f"gl{state.key}"

    @property
    def endpoint(self) -> str:
        """The endpoint for the agent."""
        return f"unix://{self.socket}"

    def running(self) -> int | None:
        """Its pid, None if it does not run."""
        return processes.find(self.pid_file, mark=str(self.config))

    def ensure(self) -> None:
        """Starts it if it does not run. Raises Failure with the missing tools or the end of its log."""
        if self.running() is not None and _accepts(self.socket):
            return
        tools = find_tools()
        self._write_files(tools["CNI plugins"])
        command = [tools["containerd"], "--config", str(self.config)]
        process = processes.start(command, pid_file=self.pid_file, log=self.log, environment=_path_of(tools))
        until = time.monotonic() + _START_SECONDS
        while not _accepts(self.socket):
            if process.poll() is not None or time.monotonic() > until:
                lines = processes.last_lines(self.log, 5)
                raise Failure(f"the private containerd did not start; the end of {self.log}:\n{lines}")
            time.sleep(0.05)

    def import_archive(self, archive: Path) -> list[str]:
        """Imports an image archive (OCI or docker); returns the image names. Raises Failure."""
        done = self.ctr("images", "import", "--snapshotter", self._snapshotter(), str(archive))
        if done.returncode != 0:
            raise Failure(
                f"--image-archive: {archive} cannot be imported: {done.stderr.strip() or done.stdout.strip()}"
            )
        return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("unpacking ")]

    def containers(self) -> list[str]:
        """Ids of all its containers and sandboxes."""
        return self.ctr("containers", "ls", "-q").stdout.split()

    def ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs containerd's tool once, in the kubelet's namespace."""
        tool = find_tools()["ctr"]
        return subprocess.run(  # noqa: S603 - containerd's own tool; arguments are data
            [tool, "--address", str(self.socket), "--namespace", "k8s.io", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    @property
    def subnet(self) -> str:
        """The network of the pods; "" before the first start."""
        try:
            plugins = json.loads((self.folder / "cni" / "10-glasslet.conflist").read_bytes())["plugins"]
            return str(plugins[0]["ipam"]["ranges"][0][0]["subnet"])
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            return ""

    def _write_files(self, cni_bin: str) -> None:
        for folder in (self.folder, self.state.run, self.folder / "cni"):
            folder.mkdir(parents=True, exist_ok=True)
        conflist = self.folder / "cni" / "10-glasslet.conflist"
        if not conflist.exists():
            conflist.write_text(json.dumps(network(self.bridge, free_subnet(self.state.key), _masquerades()), indent=2))
        self.config.write_text(
            containerd_config(
                root=self.folder / "root",
                run=self.state.run,
                cni=(cni_bin, str(self.folder / "cni")),
                sandbox_image=self.sandbox_image,
                snapshotter=self._snapshotter(),
                restrict_oom=not has_sys_resource(),
            )
        )

    def _snapshotter(self) -> str:
        """overlayfs if the state's file system supports it. Decided once, as images are unpacked for it."""
        note = self.folder / "snapshotter"
        if not note.exists():
            note.write_text("overlayfs" if _can_overlay(self.folder) else "native")
        return note.read_text().strip()


def find_tools() -> dict[str, str]:
    """Paths of the tools. Raises Failure that names the packages to install."""
    path = os.environ.get("PATH", "") + ":" + _SEARCH
    found: dict[str, str] = {}
    for tool in ("containerd", "ctr", "runc"):
        if at := shutil.which(tool, path=path):
            found[tool] = at
    for folder in _CNI_FOLDERS:
        if all(os.access(f"{folder}/{plugin}", os.X_OK) for plugin in _CNI_PLUGINS):
            found.setdefault("CNI plugins", folder)
    missing = [tool for tool in _PACKAGES if tool not in found]
    if missing:
        packages = " ".join(dict.fromkeys(_PACKAGES[tool] for tool in missing))
        raise Failure(
            f"{', '.join(missing)} not found; on Debian: apt-get install {packages}; "
            "or use a running runtime with --container-runtime-endpoint"
        )
    return found


def containerd_config(
    *, root: Path, run: Path, cni: tuple[str, str], sandbox_image: str, snapshotter: str, restrict_oom: bool
) -> str:
    """config.toml, version 2 (containerd 1.6 and later read it). `cni`: the folders of plugins and of configuration."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    plugins, configurations = cni
    return "\n".join(
        [
            "version = 2",
            f"root = {_toml(root)}",
            f"state = {_toml(run / 'state')}",
            f"disabled_plugins = {json.dumps(_UNUSED_SNAPSHOTTERS)}",
            "[grpc]",
            f"address = {_toml(run / 'containerd.sock')}",
            "[ttrpc]",
            f"address = {_toml(run / 'containerd.sock.ttrpc')}",
            f"[{cri}]",
            f"sandbox_image = {_toml(sandbox_image)}",
            f"restrict_oom_score_adj = {str(restrict_oom).lower()}",
            'stream_server_address = "127.0.0.1"',
            'stream_server_port = "0"',
            f"[{cri}.cni]",
            f"bin_dir = {_toml(plugins)}",
            f"conf_dir = {_toml(configurations)}",
            f"[{cri}.containerd]",
            f"snapshotter = {_toml(snapshotter)}",
            'default_runtime_name = "runc"',
            f"[{cri}.containerd.runtimes.runc]",
            'runtime_type = "io.containerd.runc.v2"',
            f"[{cri}.containerd.runtimes.runc.options]",
            "SystemdCgroup = false",
            "",
        ]
    )


def network(bridge: str, subnet: str, masquerade: bool) -> dict[str, object]:
    """The pod network: a bridge with addresses of `subnet`, and host ports if iptables is installed."""
    ranges = {"type": "host-local", "ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]}
    plugins: list[dict[str, object]] = [
        {
            "type": "bridge",
            "bridge": bridge,
            "isGateway": True,
            "ipMasq": masquerade,
            "hairpinMode": True,
            "ipam": ranges,
        }
    ]
    if masquerade:
        plugins.append({"type": "portmap", "capabilities": {"portMappings": True}})
    return {"cniVersion": "0.4.0", "name": f"glasslet-{bridge}", "plugins": plugins}


def free_subnet(key: str) -> str:
    """A /24 of 10.201.0.0/16 to 10.216.0.0/16 without a route on this machine, chosen by `key`."""
    routed = _routed_networks()
    start = zlib.crc32(key.encode())
    for step in range(16 * 256):
        number = (start + step) % (16 * 256)
        second, third = 201 + number // 256, number % 256
        address = 10 << 24 | second << 16 | third << 8
        if not any(address & mask == target for target, mask in routed if mask):
            return f"10.{second}.{third}.0/24"
    raise Failure("no free subnet between 10.201.0.0 and 10.216.255.0 for the pod network")


def has_sys_resource() -> bool:
    """Whether lower oom_score_adj values may be set; in containers often not."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    return False


def _routed_networks() -> list[tuple[int, int]]:
    """(network, mask) of every IPv4 route. The kernel's table has little-endian hex."""
    try:
        lines = Path("/proc/net/route").read_text().splitlines()[1:]
    except OSError:
        return []
    fields = [line.split() for line in lines]
    return [
        (int.from_bytes(bytes.fromhex(f[1])[::-1]), int.from_bytes(bytes.fromhex(f[7])[::-1]))
        for f in fields
        if len(f) > 7
    ]


def _masquerades() -> bool:
    return shutil.which("iptables", path=os.environ.get("PATH", "") + ":" + _SEARCH) is not None


def _can_overlay(folder: Path) -> bool:
    """Tries an overlay mount, which fails if the state itself is on one."""
    trial = folder / "overlay-trial"
    parts = [trial / name for name in ("lower", "upper", "work", "merged")]
    for part in parts:
        part.mkdir(parents=True, exist_ok=True)
    lower, upper, work, merged = parts
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    mounted = subprocess.run(  # noqa: S603
        ["mount", "-t", "overlay", "overlay", "-o", options, str(merged)],  # noqa: S607
        capture_output=True,
        check=False,
    )
    if mounted.returncode == 0:
        subprocess.run(["umount", str(merged)], capture_output=True, check=False)  # noqa: S603, S607
    shutil.rmtree(trial, ignore_errors=True)
    return mounted.returncode == 0


def _accepts(path: Path) -> bool:
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        stream.connect(str(path))
    except OSError:
        return False
    finally:
        stream.close()
    return True


def _path_of(tools: dict[str, str]) -> dict[str, str]:
    """The PATH in which containerd finds its shim and runc."""
    folders = [
        os.path.dirname(tools["containerd"]),
        os.path.dirname(tools["runc"]),
        os.environ.get("PATH", ""),
        _SEARCH,
    ]
    return {"PATH": ":".join(folder for folder in folders if folder)}


def gateway_of(subnet: str) -> str:
    """The first address of the pods' network: the bridge's own."""
    return str(next(ipaddress.ip_network(subnet).hosts())) if subnet else ""


def services_network(subnet: str) -> str:
    """The network for addresses of services beside that of the pods: 10.201.7.0/24 has 10.217.7.0/24."""
    if not subnet:
        return ""
    _, second, third, _ = subnet.split(".")
    return f"10.{int(second) + 16}.{third}.0/24"


def _toml(value: Path | str) -> str:
    return json.dumps(str(value), ensure_ascii=False)
