"""`/checkpoint`: what is asked of the runtime, and what the client hears."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.runtime.errors import RuntimeRejected
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod
from glasslet.server.checkpoints import ContainerCheckpoints
from glasslet.server.protocols import CheckpointFailed
from glasslet.server.routes import RouteSwitches
from tests.component.server_fixture import serving
from tests.fakes.http_client import Answer
from tests.fakes.server_sources import FakeCheckpoints, FakeNode, pod

PATH = "/checkpoint/default/web/main"


async def asked(path: str = PATH, *, method: str = "POST", node: FakeNode | None = None, **headers: str) -> Answer:
    async with serving(node or FakeNode()) as running:
        return await (await running.client()).ask(method, path, headers=headers)


async def test_the_archive_is_named() -> None:
    answer = await asked()
    assert (answer.status, answer.body) == (200, b'{"items":["/checkpoints/main.tar"]}')
    assert answer.headers["content-type"] == "application/json"


async def test_the_last_timeout_counts() -> None:
    node = FakeNode()
    await asked(f"{PATH}?timeout=7&timeout=90", node=node)
    assert node.checkpoints is not None
    assert node.checkpoints.asked == [("web", "main", 90)]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/checkpoint/default/nobody/main", "pod does not exist"),
        ("/checkpoint/default/web/other", "container other does not exist"),
        (f"{PATH}?timeout=soon", "cannot parse value of timeout parameter"),
        (f"{PATH}?timeout=", "cannot parse value of timeout parameter"),
    ],
)
async def test_what_cannot_be_is_not_found(path: str, text: str) -> None:
    answer = await asked(path)
    assert (answer.status, answer.text) == (404, text)


async def test_a_failure_is_500_with_what_failed_and_why() -> None:
    node = FakeNode(checkpoints=FakeCheckpoints(problem="rpc error: code = Unimplemented desc = unknown method"))
    answer = await asked(node=node)
    assert answer.status == 500
    assert answer.text == (
        "checkpointing of default/web/main failed (rpc error: code = Unimplemented desc = unknown method)"
    )


async def test_only_post_and_only_for_who_takes_json() -> None:
    assert (await asked(method="GET")).status == 405
    assert (await asked(Accept="text/plain")).status == 406


async def test_without_the_gate_or_debugging_handlers_there_is_no_such_path() -> None:
    assert (await asked(node=FakeNode(checkpoints=None))).status == 404
    async with serving(FakeNode(), switches=RouteSwitches(enable_debugging_handlers=False)) as running:
        assert (await (await running.client()).ask("POST", PATH)).status == 404


class Runtime:
    """Writes an archive, or does not."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[tuple[str, int]] = []

    async def checkpoint(self, container: ContainerID, archive: str, timeout: int) -> None:
        self.asked.append((container, timeout))
        if self.error is not None:
            raise self.error
        Path(archive).write_bytes(b"")


class Noon:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def checkpoints(
    folder: Path, runtime: Runtime, phase: ContainerPhase | None = ContainerPhase.RUNNING
) -> ContainerCheckpoints:
    found = ObservedContainer(
        id=ContainerID("c1"),
        name="main",
        attempt=0,
        phase=phase or ContainerPhase.EXITED,
        sandbox_id=SandboxID("s1"),
        created_at=Noon().now(),
    )
    observed = ObservedPod(uid=PodUID("uid-1"), name="web", namespace="default", containers=(found,))
    return ContainerCheckpoints(
        runtime=runtime, observed=lambda _: observed if phase else None, folder=f"{folder}/checkpoints", clock=Noon()
    )


async def test_archives_lie_in_a_private_folder_under_upstreams_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # behaviours.md §18: "checkpoints/checkpoint-<pod>_<namespace>-<container>-<RFC3339 time>.tar"
    path = await checkpoints(tmp_path, Runtime()).checkpoint(pod(), "main", 0)
    local = Noon().now().astimezone().isoformat(timespec="seconds").replace("+00:00", "Z")
    assert path == f"{tmp_path}/checkpoints/checkpoint-web_default-main-{local}.tar"
    assert stat.S_IMODE(os.stat(tmp_path / "checkpoints").st_mode) == 0o700


@pytest.mark.parametrize("phase", [None, ContainerPhase.EXITED, ContainerPhase.CREATED])
async def test_only_a_running_container_has_a_state_to_keep(tmp_path: Path, phase: ContainerPhase | None) -> None:
    runtime = Runtime()
    with pytest.raises(CheckpointFailed, match="container main not found"):
        await checkpoints(tmp_path, runtime, phase).checkpoint(pod(), "main", 0)
    assert runtime.asked == []


async def test_a_runtime_that_cannot_is_quoted(tmp_path: Path) -> None:
    error = RuntimeRejected("CheckpointContainer", "unknown method CheckpointContainer", code="UNIMPLEMENTED")
    with pytest.raises(CheckpointFailed) as raised:
        await checkpoints(tmp_path, Runtime(error)).checkpoint(pod(), "main", 0)
    assert str(raised.value) == "rpc error: code = Unimplemented desc = unknown method CheckpointContainer"


async def test_a_negative_timeout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointFailed, match="timeout value to be > 0"):
        await checkpoints(tmp_path, Runtime()).checkpoint(pod(), "main", -1)
