"""The one edge of every call: deadline, wait, metrics, translation; and answers that a healthy runtime never gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from msgspec.structs import replace

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.record.stations import WaitKind
from glasslet.runtime.cri._generated import (
    container_pb2,
    containerd_events_pb2,
    containerd_task_events_pb2,
    image_pb2,
    pod_sandbox_pb2,
    runtime_pb2,
)
from glasslet.runtime.cri.connection import CRIConnection, connect
from glasslet.runtime.cri.labels import POD_UID
from glasslet.runtime.cri.verbs import Timeouts, Verb
from glasslet.runtime.errors import (
    ExecTimeout,
    ImagePullFailed,
    NotInRuntime,
    RuntimeCallError,
    RuntimeRejected,
    RuntimeTimeout,
    RuntimeUnavailable,
)
from glasslet.runtime.protocols import RegistryAuth, RuntimeHint
from glasslet.runtime.spec import Resources, SandboxSpec
from tests.fakes.call_recording import CallMetrics, CallRecorder
from tests.fakes.cri_server import ScriptedCRI, Status

C = ContainerID("c1")
POD = SandboxSpec(name="p", namespace="d", uid="u", annotations={"a": "1"})


class Edge:
    """A connection to a scripted server, and what it told recorder and metrics after the handshake."""

    def __init__(self, server: ScriptedCRI, connection: CRIConnection, recorder: CallRecorder, metrics: CallMetrics):
        self.server, self.recorder, self.metrics = server, recorder, metrics
        self.runtime, self.images = connection.runtime, connection.images


@asynccontextmanager
async def edge(folder: Path, answers: dict[str, Any], *, request: float = 60) -> AsyncIterator[Edge]:
    """Connected; what the handshake asked is forgotten."""
    server, recorder, metrics = ScriptedCRI(answers), CallRecorder(), CallMetrics()
    async with server.serving(folder / "s") as endpoint:
        connection = await connect(
            endpoint,
            recorder=recorder,
            metrics=metrics,
            timeouts=Timeouts(request=request),
            sandbox_metrics=metrics,
        )
        recorder.ended.clear()
        metrics.operations.clear()
        try:
            yield Edge(server, connection, recorder, metrics)
        finally:
            await connection.close()


async def slow(_: object) -> container_pb2.StartContainerResponse:
    await asyncio.sleep(30)
    return container_pb2.StartContainerResponse()


async def test_a_call_is_a_named_wait_and_a_counted_operation(tmp_path: Path) -> None:
    async with edge(tmp_path, {"StartContainer": container_pb2.StartContainerResponse()}) as at:
        await at.runtime.start_container(C)

        assert at.recorder.ended == [(WaitKind.CRI_CALL, "StartContainer")]
        assert at.metrics.operations == [(Verb.START_CONTAINER, None)]


async def test_a_call_under_way_is_seen_as_a_wait(tmp_path: Path) -> None:
    async with edge(tmp_path, {"StartContainer": slow}) as at, asyncio.TaskGroup() as group:
        call = group.create_task(at.runtime.start_container(C))
        while not at.server.requests.get("StartContainer"):
            await asyncio.sleep(0.01)

        assert at.recorder.open == [(WaitKind.CRI_CALL, "StartContainer")]
        call.cancel()


async def test_a_failed_call_is_counted_with_its_kind_and_keeps_its_cause(tmp_path: Path) -> None:
    gone = Status(grpc.StatusCode.NOT_FOUND, "no such container")
    async with edge(tmp_path, {"StartContainer": gone}) as at:
        with pytest.raises(NotInRuntime, match="StartContainer: no such container") as failure:
            await at.runtime.start_container(C)

        assert isinstance(failure.value.__cause__, grpc.aio.AioRpcError)
        assert at.metrics.operations == [(Verb.START_CONTAINER, "NotInRuntime")]
        assert at.recorder.open == []


async def test_new_sandboxes_are_counted_by_their_handler(tmp_path: Path) -> None:
    # the metrics kubelet_run_podsandbox_duration_seconds and kubelet_run_podsandbox_errors_total
    answers = [pod_sandbox_pb2.RunPodSandboxResponse(pod_sandbox_id="s"), Status(grpc.StatusCode.UNKNOWN, "no")]
    async with edge(tmp_path, {"RunPodSandbox": answers[0]}) as at:
        await at.runtime.run_sandbox(replace(POD, runtime_handler="kata"))
        assert at.metrics.sandboxes == [("kata", None)]
    async with edge(tmp_path, {"RunPodSandbox": answers[1]}) as at:
        with pytest.raises(RuntimeRejected):
            await at.runtime.run_sandbox(POD)
        assert at.metrics.sandboxes == [("", "RuntimeRejected")]


async def test_a_runtime_that_does_not_answer_is_given_up_after_the_deadline(tmp_path: Path) -> None:
    async with edge(tmp_path, {"StartContainer": slow}, request=0.2) as at:
        with pytest.raises(RuntimeTimeout, match=r"no answer within 0\.2 s"):
            await at.runtime.start_container(C)

        assert at.metrics.operations == [(Verb.START_CONTAINER, "RuntimeTimeout")]


async def test_each_verb_is_given_its_own_deadline(tmp_path: Path) -> None:
    """behaviours.md §30: "Timeouts: runtimeRequestTimeout; RunPodSandbox twice that; pull without limit except cancel;
    ExecSync = command timeout + runtimeRequestTimeout on the call (0 = no limit) ...; StopContainer =
    runtimeRequestTimeout + grace"."""
    answers = {
        "StartContainer": container_pb2.StartContainerResponse(),
        "StopContainer": container_pb2.StopContainerResponse(),
        "RunPodSandbox": pod_sandbox_pb2.RunPodSandboxResponse(pod_sandbox_id="s"),
        "ExecSync": container_pb2.ExecSyncResponse(),
        "PullImage": image_pb2.PullImageResponse(image_ref="r"),
    }
    async with edge(tmp_path, answers, request=6000) as at:
        await at.runtime.start_container(C)
        await at.runtime.stop_container(C, 3000)
        await at.runtime.run_sandbox(POD)
        await at.runtime.exec_sync(C, ("true",), 1000)
        await at.images.pull_image("i", None, None)
        found = {verb: seconds for verb, seconds in at.server.deadlines.items() if verb in answers}
        await at.runtime.exec_sync(C, ("true",), 0)

        # What is left of each when the server sees it.
        assert found["StartContainer"] == pytest.approx(6000, abs=120)
        assert found["StopContainer"] == pytest.approx(9000, abs=120)
        assert found["RunPodSandbox"] == pytest.approx(12_000, abs=120)
        assert found["ExecSync"] == pytest.approx(7000, abs=120)
        assert (found["PullImage"] or 0) > 1e6 or found["PullImage"] is None
        assert (at.server.deadlines["ExecSync"] or 0) > 1e6 or at.server.deadlines["ExecSync"] is None


async def test_a_fraction_of_a_second_is_rounded_up_for_the_runtime(tmp_path: Path) -> None:
    async with edge(tmp_path, {"ExecSync": container_pb2.ExecSyncResponse()}) as at:
        await at.runtime.exec_sync(C, ("true",), 0.5)

        assert at.server.requests["ExecSync"][0].timeout == 1


async def test_a_command_that_the_runtime_gave_up_is_a_timeout_of_the_command(tmp_path: Path) -> None:
    late = Status(grpc.StatusCode.DEADLINE_EXCEEDED, "command timed out")
    async with edge(tmp_path, {"ExecSync": late}) as at:
        with pytest.raises(ExecTimeout, match="command timed out"):
            await at.runtime.exec_sync(C, ("sleep",), 1)


@pytest.mark.parametrize(
    ("verb", "answer", "call", "field"),
    [
        (
            "RunPodSandbox",
            pod_sandbox_pb2.RunPodSandboxResponse(),
            lambda e: e.runtime.run_sandbox(POD),
            "pod_sandbox_id",
        ),
        ("PullImage", image_pb2.PullImageResponse(), lambda e: e.images.pull_image("i", None, None), "image_ref"),
        (
            "Exec",
            container_pb2.ExecResponse(),
            lambda e: e.runtime.exec_url(C, ("sh",), stdin=False, stdout=True, stderr=True, tty=False),
            "url",
        ),
        (
            "ImageStatus",
            image_pb2.ImageStatusResponse(image=image_pb2.Image(id="i")),
            lambda e: e.images.image_status("i"),
            "image.size",
        ),
        (
            "PodSandboxStatus",
            pod_sandbox_pb2.PodSandboxStatusResponse(),
            lambda e: e.runtime.sandbox_status(SandboxID("s")),
            "id",
        ),
        ("Status", runtime_pb2.StatusResponse(), lambda e: e.runtime.status(), "status.conditions"),
    ],
)
async def test_an_answer_lacking_what_it_must_have_is_an_error(
    tmp_path: Path, verb: str, answer: object, call: Any, field: str
) -> None:
    async with edge(tmp_path, {verb: answer}) as at:
        with pytest.raises(RuntimeRejected, match=f"{verb}: the runtime's answer lacks {field}"):
            await call(at)


async def test_a_sandbox_is_told_of_overhead_and_the_sum_of_its_containers(tmp_path: Path) -> None:
    answers = {"UpdatePodSandboxResources": pod_sandbox_pb2.UpdatePodSandboxResourcesResponse()}
    async with edge(tmp_path, answers) as one:
        await one.runtime.update_sandbox(SandboxID("s1"), Resources(cpu_shares=10), Resources(cpu_shares=512))
        (request,) = one.server.requests["UpdatePodSandboxResources"]
    assert (request.pod_sandbox_id, request.overhead.cpu_shares, request.resources.cpu_shares) == ("s1", 10, 512)


@pytest.mark.parametrize(("mib", "fits"), [(15, True), (17, False)])
async def test_an_answer_may_be_as_large_as_the_protocol_allows(tmp_path: Path, mib: int, fits: bool) -> None:
    # behaviours.md §30: "message limit 16 MiB"
    answers = {"ExecSync": container_pb2.ExecSyncResponse(stdout=b"x" * (mib << 20))}
    async with edge(tmp_path, answers) as one:
        if fits:
            assert len((await one.runtime.exec_sync(C, ("cat",), 5)).stdout) == mib << 20
        else:
            with pytest.raises(RuntimeRejected, match="larger than max"):
                await one.runtime.exec_sync(C, ("cat",), 5)


async def test_a_pull_carries_credentials_annotations_and_the_pod(tmp_path: Path) -> None:
    """behaviours.md §8: "PullImage gets the pod annotations and the sandbox config"."""
    auth = RegistryAuth(username="me", password="secret", identity_token="i", registry_token="r", auth="a")
    async with edge(tmp_path, {"PullImage": image_pb2.PullImageResponse(image_ref="sha256:1")}) as at:
        assert await at.images.pull_image("busybox", auth, POD) == "sha256:1"

        (request,) = at.server.requests["PullImage"]
        assert request.auth == image_pb2.AuthConfig(
            username="me", password="secret", identity_token="i", registry_token="r", auth="a"
        )
        assert dict(request.image.annotations) == {"a": "1"}
        assert request.sandbox_config.metadata.name == "p"


async def test_credentials_never_show_in_errors(tmp_path: Path) -> None:
    auth = RegistryAuth(username="me", password="hunter2")
    async with edge(tmp_path, {"PullImage": Status(grpc.StatusCode.UNKNOWN, "denied")}) as at:
        with pytest.raises(ImagePullFailed) as failure:
            await at.images.pull_image("busybox", auth, POD)

        assert "hunter2" not in f"{failure.value!r} {failure.value.__cause__!r}"


async def test_a_container_that_vanishes_while_its_pod_is_read_is_left_out(tmp_path: Path) -> None:
    answers = {
        "ListPodSandbox": pod_sandbox_pb2.ListPodSandboxResponse(
            items=[pod_sandbox_pb2.PodSandbox(id="s", created_at=1, labels={POD_UID: "u"})]
        ),
        "ListContainers": container_pb2.ListContainersResponse(
            containers=[container_pb2.Container(id="c1", created_at=1, labels={POD_UID: "u"})]
        ),
        "PodSandboxStatus": pod_sandbox_pb2.PodSandboxStatusResponse(
            status=pod_sandbox_pb2.PodSandboxStatus(
                id="s",
                created_at=1,
                metadata=pod_sandbox_pb2.PodSandboxMetadata(name="p", namespace="d", uid="u"),
                labels={POD_UID: "u"},
            )
        ),
        "ContainerStatus": Status(grpc.StatusCode.NOT_FOUND, "gone"),
    }
    async with edge(tmp_path, answers) as at:
        seen = await at.runtime.read_pod(PodUID("u"))

        assert seen is not None
        assert [s.id for s in seen.sandboxes] == ["s"]
        assert seen.containers == ()
        assert dict(at.server.requests["ListContainers"][0].filter.label_selector) == {POD_UID: "u"}


async def test_the_cgroup_driver_is_the_runtimes(tmp_path: Path) -> None:
    answer = runtime_pb2.RuntimeConfigResponse(
        linux=runtime_pb2.LinuxRuntimeConfiguration(cgroup_driver=runtime_pb2.CGROUPFS)
    )
    async with edge(tmp_path, {"RuntimeConfig": answer}) as at:
        assert await at.runtime.cgroup_driver() == "cgroupfs"


async def test_a_runtime_that_says_nothing_of_linux_reports_no_driver(tmp_path: Path) -> None:
    # Upstream: "No `linux` part: configured driver stays."
    async with edge(tmp_path, {"RuntimeConfig": runtime_pb2.RuntimeConfigResponse()}) as at:
        assert await at.runtime.cgroup_driver() is None


def settings(name: str, **runtime: object) -> str:
    """containerd's settings with one runtime."""
    return json.dumps({"containerd": {"defaultRuntimeName": name, "runtimes": {name: runtime}}})


RUNC, KATA = "io.containerd.runc.v2", "io.containerd.kata.v2"


@pytest.mark.parametrize(
    ("config", "driver"),
    [
        (settings("runc", runtimeType=RUNC, options={"SystemdCgroup": True}), "systemd"),
        (settings("runc", runtimeType=RUNC), "cgroupfs"),
        (settings("kata", runtimeType=KATA), None),
        ("{", None),
        ("[]", None),
    ],
)
async def test_containerds_settings_name_its_driver(tmp_path: Path, config: str, driver: str | None) -> None:
    async with edge(tmp_path, {"Status": runtime_pb2.StatusResponse(info={"config": config})}) as at:
        assert await at.runtime.cgroup_driver_in_settings() == driver


async def hint_of(at: Edge, kind: str) -> RuntimeHint:
    """The first hint of that kind."""
    async with asyncio.timeout(30):
        async for hint in at.runtime.hints():
            if hint.kind == kind:
                return hint
    raise AssertionError("the stream ended")


async def test_container_events_of_the_cri_are_hints_where_they_are_served(tmp_path: Path) -> None:
    events: asyncio.Queue[object] = asyncio.Queue()
    event = runtime_pb2.ContainerEventResponse(
        container_id="c1", container_event_type=runtime_pb2.CONTAINER_STOPPED_EVENT
    )
    event.pod_sandbox_status.metadata.uid = "u"
    events.put_nowait(event)
    async with edge(tmp_path, {"GetContainerEvents": events}) as at:
        hint = await hint_of(at, "container_stopped")

        assert hint == RuntimeHint(id="c1", uid=PodUID("u"), kind="container_stopped")


async def test_containerd_events_are_hints_where_the_cri_serves_none(tmp_path: Path) -> None:
    server, recorder, metrics = ScriptedCRI(), CallRecorder(), CallMetrics()
    server.containerd_events = asyncio.Queue()
    started = containerd_events_pb2.Envelope(namespace="k8s.io", topic="/tasks/start")
    started.event.value = containerd_task_events_pb2.TaskStart(container_id="c1").SerializeToString()
    server.containerd_events.put_nowait(started)
    async with server.serving(tmp_path / "s") as endpoint:
        connection = await connect(endpoint, recorder=recorder, metrics=metrics)

        hint = await hint_of(Edge(server, connection, recorder, metrics), "container_started")

        assert hint.id == "c1"
        await connection.close()


async def test_a_runtime_without_any_events_says_so(tmp_path: Path) -> None:
    async with edge(tmp_path, {}) as at:
        with pytest.raises(RuntimeRejected) as failure:
            await hint_of(at, "never")

        assert failure.value.code == "UNIMPLEMENTED"


async def test_a_broken_stream_is_the_callers_business(tmp_path: Path) -> None:
    events: asyncio.Queue[object] = asyncio.Queue()
    events.put_nowait(Status(grpc.StatusCode.UNAVAILABLE, "shutting down"))
    async with edge(tmp_path, {"GetContainerEvents": events}) as at:
        with pytest.raises(RuntimeUnavailable, match="shutting down"):
            await hint_of(at, "never")


async def test_a_list_leaves_out_what_has_no_id_of_its_own_and_says_so(tmp_path: Path) -> None:
    good = pod_sandbox_pb2.PodSandbox(id="s1", labels={POD_UID: "u"})
    listed = pod_sandbox_pb2.ListPodSandboxResponse(
        items=[pod_sandbox_pb2.PodSandbox(labels={POD_UID: "x"}), good, good, pod_sandbox_pb2.PodSandbox()]
    )
    answers = {"ListPodSandbox": listed, "ListContainers": container_pb2.ListContainersResponse()}
    async with edge(tmp_path, answers) as at:
        (pod,) = await at.runtime.list_pods()
        assert [sandbox.id for sandbox in pod.sandboxes] == ["s1"]
        assert at.recorder.findings == [
            "runtime: ListPodSandbox gives 3 items without an id of their own; they are left out"
        ]


async def test_an_answer_of_nearly_16_mib_is_taken(tmp_path: Path) -> None:
    """The Go kubelet's limit (k8s.io/cri-client maxMsgSize)."""
    listed = container_pb2.ListContainersResponse(
        containers=[container_pb2.Container(id=f"c{n}", labels={POD_UID: "u", "x": "y" * 1_000_000}) for n in range(16)]
    )
    assert listed.ByteSize() < 16 * 1024 * 1024
    answers = {"ListPodSandbox": pod_sandbox_pb2.ListPodSandboxResponse(), "ListContainers": listed}
    async with edge(tmp_path, answers) as at:
        (pod,) = await at.runtime.list_pods()
        assert len(pod.containers) == 16


async def test_a_larger_answer_is_an_error_of_its_call(tmp_path: Path) -> None:
    listed = container_pb2.ListContainersResponse(
        containers=[container_pb2.Container(id=f"c{n}", labels={"x": "y" * 1_000_000}) for n in range(17)]
    )
    answers = {"ListPodSandbox": pod_sandbox_pb2.ListPodSandboxResponse(), "ListContainers": listed}
    async with edge(tmp_path, answers) as at:
        with pytest.raises(RuntimeCallError, match="larger than max"):
            await at.runtime.list_pods()
