"""The worlds that the contract holds for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from glasslet.record.recorder import Recorder
from glasslet.runtime.cri.connection import connect
from tests.contract.worlds import SilentRecorder, World, fake_world
from tests.fakes.containerd import PrivateContainerd


class SilentMetrics:
    """Counts nothing."""

    def operation(self, *_: object) -> None:
        return


REAL = [pytest.param(name, marks=pytest.mark.containerd) for name in ("containerd", "newer_containerd")]


@pytest.fixture(params=["fake", *REAL])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """One of the runtimes, empty before and after each test."""
    if request.param == "fake":
        yield fake_world(tmp_path)
        return
    daemon: PrivateContainerd = request.getfixturevalue(request.param)
    recorder = cast(Recorder, cast(Any, SilentRecorder()))
    connection = await connect(daemon.endpoint, recorder=recorder, metrics=SilentMetrics())
    real = World(connection.runtime, connection.images, tmp_path, containerd=daemon)
    try:
        yield real
    finally:
        await real.clean_up()
        await connection.close()
