"""The containerd of the node: as other tests have it, with what the suite asks for."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

from tests.fakes.containerd import PrivateContainerd

KEPT = "conformance"
"""containerd's namespace of images that stay, whatever a test removes."""


class NodeContainerd(PrivateContainerd):
    """`sandbox_image`: the image whose name the suite knows. Pods have a default route to the node; there is a second
    runtime handler; registries are configured below `hosts`."""

    def __init__(self, folder: Path, sandbox_image: str) -> None:
        self.sandbox_image = sandbox_image
        self.hosts = folder / "certs.d"
        super().__init__(folder)
        with (folder / "config.toml").open("a") as file:
            file.write(f"""
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.test-handler]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.test-handler.options]
  Root = "{folder}/runc"
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "{self.hosts}"
""")

    def account_for_disks(self) -> None:
        """A limit that limits nothing: with it, v1 hierarchies count the disk's bytes for every cgroup of the node."""
        file = Path("/sys/fs/cgroup/blkio/runtime/blkio.throttle.read_bps_device")
        device = self.folder.stat().st_dev
        with contextlib.suppress(OSError):  # the unified hierarchy always counts; some filesystems have no disk
            file.write_text(f"{os.major(device)}:{os.minor(device)} 100000000000")

    def keep_images(self, archive: Path) -> None:
        """Imports them, and once more where nobody removes them. Raises RuntimeError for what is no image archive."""
        try:
            self.import_images(archive)
            self._ctr("-n", KEPT, "images", "import", "--no-unpack", str(archive))
        except subprocess.CalledProcessError as error:
            said = error.stderr.strip().splitlines()[-1:]
            raise RuntimeError(f"--images: {archive} holds no images: {''.join(said)}") from error

    def kept_images(self) -> dict[str, tuple[str, str]]:
        """Name -> (media type, digest)."""
        listed = self._ctr("-n", KEPT, "images", "ls").stdout.splitlines()[1:]
        return {row[0]: (row[1], row[2]) for row in (line.split() for line in listed)}

    @property
    def blobs(self) -> Path:
        """Content by digest."""
        return self.folder / "root" / "io.containerd.content.v1.content" / "blobs"

    def pull_from(self, mirror: str) -> None:
        """From now on every registry's images come from there."""
        default = self.hosts / "_default"
        default.mkdir(parents=True)
        (default / "hosts.toml").write_text(f'[host."{mirror}"]\n  capabilities = ["pull", "resolve"]\n')

    def _network(self) -> dict[str, object]:
        network = super()._network()
        plugins = network["plugins"]
        assert isinstance(plugins, list)
        plugins[0]["ipam"]["routes"] = [{"dst": "0.0.0.0/0"}]
        return network
