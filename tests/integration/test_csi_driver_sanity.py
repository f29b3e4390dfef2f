"""The CSI driver of the tests keeps the rules of its interface: csi-sanity of csi-test says so. Built once by
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


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
async def test_the_driver_of_the_tests_passes_csi_sanity(sanity: Path, tmp_path: Path) -> None:
    driver = FakeCSIDriver(tmp_path / "plugins", mounts=Mounts())
    driver.controller = Controller()
    driver.capabilities = {STAGE, Capability.EXPAND_VOLUME, Capability.GET_VOLUME_STATS}
    driver.usage = [messages.VolumeUsage(total=100, used=60, available=40, unit=messages.VolumeUsage.BYTES)]
    await driver.serve()
    try:
        process = await asyncio.create_subprocess_exec(
            str(sanity),
            f"--csi.endpoint=unix://{driver.socket}",
            f"--csi.stagingdir={tmp_path}/staging",
            f"--csi.mountdir={tmp_path}/mount",
            "--ginkgo.no-color",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        text = (await process.communicate())[0].decode()
    finally:
        await driver.stop()
    counted = re.search(r"(\d+) Passed \| (\d+) Failed", text)
    assert counted is not None, text[-2000:]
    assert process.returncode == 0, text[-4000:]
    assert int(counted[1]) >= 40
    assert (driver.staged, driver.published) == ({}, {})
