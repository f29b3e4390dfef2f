#!/usr/bin/env python3
"""Builds OCI image archives out of a static busybox, for machines that reach no registry.

Usage: scripts/images.py OUT.tar [--busybox-name NAME]... [--pause-name NAME]... [--binary /bin/busybox]

The archive holds a busybox image (every applet a link in /bin) and a pause image, each under the names given; import it
with `ctr -n k8s.io images import OUT.tar`. Only the standard library is needed. Tests also call `write_archive`.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import platform
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BUSYBOX = "docker.io/library/busybox:1.36"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "ppc64le": "ppc64le", "s390x": "s390x"}
PAUSE_LOOP = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait; done"
"""As process 1: ends on TERM; the `wait` between two sleeps also reaps orphans that a shared pid namespace hands it."""


@dataclass(frozen=True, kw_only=True)
class BuiltImage:
    """One image to build: busybox plus its configuration. Equal file contents are stored once in an archive."""

    names: Sequence[str]
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    env: Sequence[str] = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",)
    user: str = ""
    working_dir: str = "/"
    stop_signal: str = ""
    applets: bool = True
    files: dict[str, bytes] = field(default_factory=dict)


def busybox_image(names: Sequence[str] = (BUSYBOX,)) -> BuiltImage:
    """The usual busybox: a shell when nothing else is asked for."""
    return BuiltImage(names=names, command=("sh",))


def pause_image(names: Sequence[str]) -> BuiltImage:
    """What holds a sandbox open."""
    return BuiltImage(names=names, entrypoint=("/bin/busybox", "sh", "-c", PAUSE_LOOP), applets=False)


def write_archive(path: Path, images: Iterable[BuiltImage], *, binary: Path = Path("/bin/busybox")) -> None:
    """Writes an OCI image layout as a tar file. The same input gives the same bytes."""
    blobs: dict[str, bytes] = {}
    manifests = []
    for image in images:
        manifest = _manifest(image, binary, blobs)
        for name in image.names:
            annotations = {
                "io.containerd.image.name": name,
                "org.opencontainers.image.ref.name": name.rpartition(":")[2],
            }
            manifests.append({**manifest, "annotations": annotations})
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": manifests,
    }
    with tarfile.open(path, "w") as archive:
        _add_file(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add_file(archive, "index.json", _json(index))
        for digest, content in blobs.items():
            _add_file(archive, f"blobs/sha256/{digest}", content)


def _manifest(image: BuiltImage, binary: Path, blobs: dict[str, bytes]) -> dict[str, object]:
    """Stores the image's layer, configuration and manifest; gives the manifest's descriptor."""
    layer = _layer(image, binary)
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    config = {
        "architecture": architecture,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": _runtime_config(image),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "scripts/images.py"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": _store("application/vnd.oci.image.config.v1+json", _json(config), blobs),
        "layers": [_store("application/vnd.oci.image.layer.v1.tar", layer, blobs)],
    }
    descriptor = _store("application/vnd.oci.image.manifest.v1+json", _json(manifest), blobs)
    return {**descriptor, "platform": {"architecture": architecture, "os": "linux"}}


def _runtime_config(image: BuiltImage) -> dict[str, object]:
    config: dict[str, object] = {"Env": list(image.env), "WorkingDir": image.working_dir}
    if image.entrypoint:
        config["Entrypoint"] = list(image.entrypoint)
    if image.command:
        config["Cmd"] = list(image.command)
    if image.user:
        config["User"] = image.user
    if image.stop_signal:
        config["StopSignal"] = image.stop_signal
    return config


def _layer(image: BuiltImage, binary: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777), ("var", 0o755)):
            _add_folder(layer, folder, mode)
        _add_file(layer, "bin/busybox", binary.read_bytes(), 0o755)
        for applet in _applets(binary) if image.applets else ():
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname, link.mode = tarfile.SYMTYPE, "busybox", 0o777
            layer.addfile(link)
        _add_file(layer, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
        _add_file(layer, "etc/group", b"root:x:0:\nnogroup:x:65534:\n")
        for name, content in image.files.items():
            _add_file(layer, name.lstrip("/"), content, 0o755)
    return buffer.getvalue()


def _applets(binary: Path) -> list[str]:
    listed = subprocess.run([binary, "--list"], check=True, capture_output=True, text=True)  # noqa: S603 (given by the caller)
    return sorted(set(listed.stdout.split()) - {"busybox"})


def _store(media_type: str, content: bytes, blobs: dict[str, bytes]) -> dict[str, object]:
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _add_folder(archive: tarfile.TarFile, name: str, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, mode
    archive.addfile(entry)


def _add_file(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def main() -> int:
    parser = argparse.ArgumentParser(description="build busybox and pause images as an OCI archive")
    parser.add_argument("archive", type=Path, help="the tar file to write")
    parser.add_argument("--busybox-name", action="append", metavar="NAME", help=f"default: {BUSYBOX}")
    parser.add_argument("--pause-name", action="append", metavar="NAME", help="without it, no pause image is built")
    parser.add_argument("--binary", type=Path, default=Path("/bin/busybox"), help="a statically linked busybox")
    options = parser.parse_args()
    if not options.binary.is_file():
        parser.error(f"--binary {options.binary}: no such file (Debian: apt-get install busybox-static)")
    images = [busybox_image(options.busybox_name or (BUSYBOX,))]
    if options.pause_name:
        images.append(pause_image(options.pause_name))
    write_archive(options.archive, images, binary=options.binary)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
