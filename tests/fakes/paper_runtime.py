"""A runtime that only keeps books, as a process: `python -m tests.fakes.paper_runtime SOCKET`.

It answers at once and runs nothing, so that what an agent uses of the CPU is its own work, and nearly the same each
time. Serves CRI without events until its standard input ends; prints a line when it listens.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from glasslet.runtime.cri._generated import container_pb2, image_pb2, pod_sandbox_pb2, runtime_pb2
from glasslet.runtime.cri.calls import methods_of
from tests.fakes.cri_server import ScriptedCRI

IMAGE = "sha256:" + "a" * 64
_READY = (("RuntimeReady", True), ("NetworkReady", True))


class PaperRuntime:
    """Sandboxes and containers as statuses; each call changes them."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._sandboxes: dict[str, pod_sandbox_pb2.PodSandboxStatus] = {}
        self._containers: dict[str, container_pb2.ContainerStatus] = {}
        self._sandbox_of: dict[str, str] = {}

    def answers(self) -> dict[str, Any]:
        """An answer for each verb that this class has a method for."""
        methods = {**methods_of("RuntimeService"), **methods_of("ImageService")}
        return {verb: self._answer(verb, method.response) for verb, method in methods.items() if hasattr(self, verb)}

    def _answer(self, verb: str, response: type[Message]) -> Any:
        async def answer(request: Any) -> Message:
            return response(**(getattr(self, verb)(request) or {}))

        return answer

    # The names and fields are the protocol's.
    def Status(self, _: Any) -> Mapping[str, Any]:  # noqa: N802
        """The runtime and its network are ready."""
        conditions = [runtime_pb2.RuntimeCondition(type=name, status=ready) for name, ready in _READY]
        return {"status": runtime_pb2.RuntimeStatus(conditions=conditions)}

    def RunPodSandbox(self, request: Any) -> Mapping[str, Any]:  # noqa: N802
        """A sandbox that is ready, with an address."""
        number, config = next(self._numbers), request.config
        made = pod_sandbox_pb2.PodSandboxStatus(
            id=f"sandbox-{number}",
            metadata=config.metadata,
            state=pod_sandbox_pb2.SANDBOX_READY,
            created_at=time.time_ns(),
            labels=config.labels,
            annotations=config.annotations,
        )
        made.network.ip = f"198.18.{number // 250 % 250}.{number % 250 + 1}"
        self._sandboxes[made.id] = made
        return {"pod_sandbox_id": made.id}

    def StopPodSandbox(self, request: Any) -> None:  # noqa: N802
        """It is not ready any more."""
        if (known := self._sandboxes.get(request.pod_sandbox_id)) is not None:
            known.state = pod_sandbox_pb2.SANDBOX_NOTREADY

    def RemovePodSandbox(self, request: Any) -> None:  # noqa: N802
        """It is gone, with its containers."""
        self._sandboxes.pop(request.pod_sandbox_id, None)
        for one in [one for one, sandbox in self._sandbox_of.items() if sandbox == request.pod_sandbox_id]:
            del self._containers[one], self._sandbox_of[one]

    def PodSandboxStatus(self, request: Any) -> Mapping[str, Any]:  # noqa: N802
        """One sandbox."""
        return {"status": self._sandboxes[request.pod_sandbox_id]}

    def ListPodSandbox(self, request: Any) -> Mapping[str, Any]:  # noqa: N802
        """Sandboxes by id and labels."""
        items = [
            pod_sandbox_pb2.PodSandbox(
                id=one.id,
                metadata=one.metadata,
                state=one.state,
                created_at=one.created_at,
                labels=one.labels,
                annotations=one.annotations,
            )
            for one in self._sandboxes.values()
            if _fits(request.filter, one)
        ]
        return {"items": items}

    def CreateContainer(self, request: Any) -> Mapping[str, Any]:  # noqa: N802
        """A container that does not run yet."""
        config = request.config
        made = container_pb2.ContainerStatus(
            id=f"container-{next(self._numbers)}",
            metadata=config.metadata,
            state=container_pb2.CONTAINER_CREATED,
            created_at=time.time_ns(),
            image=config.image,
            image_ref=IMAGE,
            labels=config.labels,
            annotations=config.annotations,
            log_path=str(Path(request.sandbox_config.log_directory, config.log_path)),
        )
        self._containers[made.id] = made
        self._sandbox_of[made.id] = request.pod_sandbox_id
        return {"container_id": made.id}

    def StartContainer(self, request: Any) -> None:  # noqa: N802
        """It runs."""
        known = self._containers[request.container_id]
        known.state, known.started_at = container_pb2.CONTAINER_RUNNING, time.time_ns()

    def StopContainer(self, request: Any) -> None:  # noqa: N802
        """It ended with 0."""
        if (known := self._containers.get(request.container_id)) is not None:
            known.state, known.finished_at = container_pb2.CONTAINER_EXITED, time.time_ns()

    def RemoveContainer(self, request: Any) -> None:  # noqa: N802
        """It is gone."""
        if self._containers.pop(request.container_id, None) is not None:
            del self._sandbox_of[request.container_id]

    def ContainerStatus(self, request: Any) -> Mapping[str, Any]:  # noqa: N802
        """One container."""
        return {"status": self._containers[request.container_id]}

    def ListContainers(self, request: Any) -> Mapping[str, Any]:  # noqa: N802
        """Containers by id and labels."""
        found = [
            container_pb2.Container(
                id=one.id,
                pod_sandbox_id=self._sandbox_of[one.id],
                metadata=one.metadata,
                image=one.image,
                image_ref=one.image_ref,
                state=one.state,
                created_at=one.created_at,
                labels=one.labels,
                annotations=one.annotations,
            )
            for one in self._containers.values()
            if _fits(request.filter, one)
        ]
        return {"containers": found}

    def ImageStatus(self, request: Any) -> Mapping[str, Any]:  # noqa: N802
        """Every image is here."""
        return {"image": image_pb2.Image(id=IMAGE, repo_tags=[request.image.image], size=1)}

    def ListImages(self, _: Any) -> Mapping[str, Any]:  # noqa: N802
        """One image."""
        return {"images": [image_pb2.Image(id=IMAGE, size=1)]}


def _fits(wanted: Any, one: Any) -> bool:
    return (not wanted.id or one.id == wanted.id) and all(
        one.labels.get(key) == value for key, value in wanted.label_selector.items()
    )


async def main(socket: str) -> None:
    """Serves until the standard input ends."""
    async with ScriptedCRI(PaperRuntime().answers()).serving(Path(socket)):
        print("listens", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
