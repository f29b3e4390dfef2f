"""The CSI drivers of the tests keep the rules of their interface: csi-sanity of csi-test says so. Built once by
`tests/go/csi-sanity/build`."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from glasslet.host.mounts.syscalls import Mounts
from glasslet.volumes.csi._generated import csi_pb2 as messages
from tests.fakes.csi_controller import Controller
from tests.fakes.csi_driver import STAGE, Capability, FakeCSIDriver
from tests.fakes.loop_csi_driver import Files, LoopDriver, LoopDriverProcess

SOURCES = Path(__file__).parents[1] / "go" / "csi-sanity"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glasslet"

pytestmark = [pytest.mark.go, pytest.mark.timeout(600)]


def program() -> Path:
    sources = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))).hexdigest()
    return CACHE / f"csi-sanity-{sources[:12]}"


@pytest.fixture(scope="session")
def sanity() -> Path:
    found = program()
    if not found.exists():
        if shutil.which("go") is None:
            pytest.skip(f"{found} is not built and Go is not installed")
        found.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([str(SOURCES / "build"), str(found)], check=True, stdout=subprocess.DEVNULL)
    return found


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@needs_root
async def test_the_driver_of_the_tests_passes_csi_sanity(sanity: Path, tmp_path: Path) -> None:
    driver = FakeCSIDriver(tmp_path / "plugins", mounts=Mounts())
    driver.controller = Controller()
    driver.capabilities = {STAGE, Capability.EXPAND_VOLUME, Capability.GET_VOLUME_STATS}
    driver.usage = [messages.VolumeUsage(total=100, used=60, available=40, unit=messages.VolumeUsage.BYTES)]
    await driver.serve()
    try:
        assert await passed(sanity, driver.socket, tmp_path) >= 40
    finally:
        await driver.stop()
    assert (driver.staged, driver.published) == ({}, {})


@needs_root
async def test_the_driver_with_loop_devices_passes_csi_sanity(sanity: Path, tmp_path: Path) -> None:
    files = Files(tmp_path / "data", makes_missing=False)
    driver = LoopDriver(name="loop.example", nodes=("n1",), root=tmp_path, files=files, attaches=True)
    served = LoopDriverProcess(tmp_path / "plugins", driver)
    await served.serve()
    try:
        assert await passed(sanity, served.socket, tmp_path) >= 60
    finally:
        await served.stop()
    assert not list((tmp_path / "data").glob("*.img"))


async def passed(sanity: Path, socket: Path, folder: Path) -> int:
    """How many checks passed; all that ran."""
    process = await asyncio.create_subprocess_exec(
        str(sanity),
        f"--csi.endpoint=unix://{socket}",
        f"--csi.stagingdir={folder}/staging",
        f"--csi.mountdir={folder}/mount",
        f"--csi.testvolumesize={32 << 20}",
        f"--csi.testvolumeexpandsize={48 << 20}",
        "--ginkgo.no-color",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    text = (await process.communicate())[0].decode()
    counted = re.search(r"(\d+) Passed \| (\d+) Failed", text)
    assert counted is not None, text[-2000:]
    assert process.returncode == 0, text[-4000:]
    return int(counted[1])
