"""Commands in containers, and logs, as the Unix socket gives them."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.answers.requests import ExecRequest
from glasslet.glass.containers import ContainerAccess
from glasslet.glass.requests import RequestRefused, chosen_container, exec_request, log_request
from glasslet.runtime.logs.container_logs import ContainerLogs
from glasslet.runtime.model import ObservedPod
from tests.builders.observed import START, exited_container, observed_container, observed_pod
from tests.builders.pod import container, pod


class StreamingRuntime:
    """Gives a URL for each command, and keeps what was asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[str, ...], dict[str, Any]]] = []

    async def exec_url(self, container: str, command: tuple[str, ...], **streams: bool) -> str:
        self.calls.append((container, command, streams))
        return "http://127.0.0.1:1/exec/token"


def access(observed: ObservedPod | None) -> tuple[ContainerAccess, StreamingRuntime]:
    runtime = StreamingRuntime()
    logs = ContainerLogs(observed=lambda uid: observed, now=lambda: START)
    return ContainerAccess(runtime=runtime, observed=lambda uid: observed, logs=logs), runtime


async def test_a_command_runs_in_the_newest_instance() -> None:
    containers, runtime = access(observed_pod(observed_container(attempt=1), exited_container()))
    wanted = ExecRequest(command=("id",), container="main", tty=True)
    assert await containers.exec_url(pod(), wanted) == "http://127.0.0.1:1/exec/token"
    streams = {"stdin": False, "stdout": True, "stderr": False, "tty": True}
    assert runtime.calls == [("main-1", ("id",), streams)]


@pytest.mark.parametrize("observed", [None, observed_pod(exited_container())], ids=["unknown", "exited"])
async def test_a_command_in_a_container_that_does_not_run_is_refused(observed: ObservedPod | None) -> None:
    containers, _ = access(observed)
    with pytest.raises(RequestRefused) as refused:
        await containers.exec_url(pod(), ExecRequest(command=("id",), container="main"))
    assert refused.value.status == 409
    assert refused.value.answer.value == "main"


def test_without_a_name_the_default_container_is_chosen() -> None:
    default = {"kubectl.kubernetes.io/default-container": "second"}
    assert chosen_container(pod(container(), container("second"), annotations=default), "") == "second"
    assert chosen_container(pod(container(), container("second")), "") == "main"


@pytest.mark.parametrize(
    ("field", "value"),
    [("tail", "-1"), ("tail", "9" * 5000), ("limitBytes", "0"), ("follow", "maybe"), ("since", "yesterday")],
)
def test_a_bad_log_option_is_refused_with_field_value_and_allowed_values(field: str, value: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        log_request({field: value}, START)
    answer = refused.value.answer
    assert (refused.value.status, answer.field, answer.value) == (400, field, value[:100])
    assert answer.allowed


@pytest.mark.parametrize("body", [b"", b"[]", b'{"command":[]}', b'{"command":["\xff"]}', b"\xff\xfe"])
def test_a_body_that_is_no_command_is_refused(body: bytes) -> None:
    with pytest.raises(RequestRefused) as refused:
        exec_request(body)
    assert refused.value.status == 400
