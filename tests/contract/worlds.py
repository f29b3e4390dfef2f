"""The two runtimes under contract, behind one face: tests ask for behaviour, each world knows how to bring it about."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.runtime.cri.runtime_service import CRIRuntime
from glasslet.runtime.model import ObservedContainer, ObservedPod
from glasslet.runtime.protocols import ImageService
from glasslet.runtime.spec import ContainerSpec, NamespaceMode, Namespaces, SandboxSecurity, SandboxSpec
from tests.fakes.containerd import BUSYBOX, CONFIGURED, NAMED_USER, PrivateContainerd
from tests.fakes.programs import Command, Program, Pull
from tests.fakes.runtime import FakeRuntime
from tests.fakes.runtime_world import POD_NAME, POD_NAMESPACE, POD_UID

UNREACHABLE_IMAGE = "localhost:1/nobody/listens:1"
NO_SUCH_PROGRAM = "/no/such/program"
CRI_LINE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d) stdout F "


@dataclass(frozen=True)
class Behaviour:
    """What a container does: as a command of busybox, and as a script of the fake."""

    command: tuple[str, ...]
    program: Program


def shell(line: str) -> tuple[str, ...]:
    """A busybox shell running this line."""
    return ("/bin/sh", "-c", line)


ECHO_AND_FAIL = shell("echo out; echo err >&2; exit 4")
SLOW = ("/bin/sleep", "300")
_COMMANDS = {
    " ".join(ECHO_AND_FAIL): Command(exit_code=4, stdout=b"out\n", stderr=b"err\n"),
    " ".join(SLOW): Command(takes=300),
}
OBEDIENT = Behaviour(
    shell("trap 'exit 7' TERM; while :; do sleep 1 & wait $!; done"), Program(term_code=7, commands=_COMMANDS)
)
DEAF = Behaviour(
    shell("trap '' TERM; echo ready; while :; do sleep 1; done"),
    Program(ignores_term=True, output=("ready",), commands=_COMMANDS),
)
GREETING = Behaviour(
    shell("trap 'exit 7' TERM; echo hello; while :; do sleep 1 & wait $!; done"),
    Program(output=("hello",), term_code=7),
)
UNSTARTABLE = Behaviour((NO_SUCH_PROGRAM,), Program(start_error=f"exec: {NO_SUCH_PROGRAM}: no such file or directory"))


def exits(code: int, after: float = 0.0) -> Behaviour:
    """Ends by itself."""
    return Behaviour(shell(f"sleep {after}; exit {code}"), Program(exit_after=after, exit_code=code))


@dataclass
class World:
    """A runtime, its images, a place for logs, and what differs between the two."""

    runtime: CRIRuntime | FakeRuntime
    images: ImageService
    folder: Path
    fake: FakeRuntime | None = None
    containerd: PrivateContainerd | None = None
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def pod(self, *, host_network: bool = False, attempt: int = 0, of: SandboxSpec | None = None) -> SandboxSpec:
        """A pod that nobody else has; `of`: the same pod, another attempt."""
        name = of.name if of is not None else f"pod-{next(self._numbers)}"
        uid = of.uid if of is not None else str(uuid.uuid4())
        network = NamespaceMode.NODE if host_network else NamespaceMode.POD
        return SandboxSpec(
            name=name,
            namespace="contract",
            uid=uid,
            attempt=attempt,
            hostname="" if host_network else name,
            labels={POD_NAME: name, POD_NAMESPACE: "contract", POD_UID: uid, "app": "contract"},
            annotations={"note": "kept"},
            log_directory=str(self.folder / uid),
            security=SandboxSecurity(namespaces=Namespaces(network=network)),
        )

    def container(self, pod: SandboxSpec, behaviour: Behaviour, *, name: str = "main", **fields: Any) -> ContainerSpec:
        """A container of that pod. In the fake, names stand for programs."""
        if self.fake is not None:
            self.fake.program(name, behaviour.program)
        attempt = fields.get("attempt", 0)
        spec: dict[str, Any] = {
            "name": name,
            "image": BUSYBOX,
            "user_specified_image": BUSYBOX,
            "command": behaviour.command,
            "labels": {**pod.labels, "io.kubernetes.container.name": name},
            "annotations": {"io.kubernetes.container.restartCount": str(attempt)},
            "log_path": f"{name}/{attempt}.log",
        }
        return ContainerSpec(**{**spec, **fields})

    async def run_pod(self) -> tuple[SandboxID, SandboxSpec]:
        """A ready sandbox."""
        pod = self.pod()
        Path(pod.log_directory).mkdir(parents=True)
        return await self.runtime.run_sandbox(pod), pod

    async def run(self, behaviour: Behaviour) -> tuple[SandboxID, SandboxSpec, ContainerID]:
        """A pod with one started container."""
        sandbox, pod = await self.run_pod()
        container = await self.runtime.create_container(sandbox, self.container(pod, behaviour), pod)
        await self.runtime.start_container(container)
        return sandbox, pod, container

    async def read(self, uid: str) -> ObservedPod:
        """The pod, which must be there."""
        found = await self.runtime.read_pod(PodUID(uid))
        assert found is not None
        return found

    async def until(self, container: ContainerID, is_so: Callable[[ObservedContainer], bool]) -> ObservedContainer:
        """The container, once it is so; within a minute."""
        async with asyncio.timeout(60):
            while not is_so(seen := await self.runtime.container_status(container)):
                await asyncio.sleep(0.02)
        return seen

    async def until_it_spoke(self, pod: SandboxSpec) -> str:
        """The log of the container, once there is something in it: the program runs by then, and has set its traps."""
        log = Path(pod.log_directory, "main", "0.log")
        async with asyncio.timeout(60):
            while not (log.exists() and log.read_text().endswith("\n")):
                await asyncio.sleep(0.02)
        return log.read_text()

    def die(self, container: ContainerID) -> None:
        """The main process is killed from outside."""
        if self.fake is not None:
            self.fake.kill(container)
        if self.containerd is not None:
            self.containerd.kill_task(container)

    async def clean_up(self) -> None:
        """Stops and removes what the test left."""
        if self.containerd is not None:
            await asyncio.to_thread(self.containerd.remove_all_pods)
            return
        for pod in await self.runtime.list_pods():
            for sandbox in pod.sandboxes:
                await self.runtime.stop_sandbox(sandbox.id)
                await self.runtime.remove_sandbox(sandbox.id)


def fake_world(folder: Path) -> World:
    """The fake with the same images as the real one; not strict, as no real runtime refuses to remove what runs."""
    fake = FakeRuntime(images=(BUSYBOX,), strict=False)
    fake.add_image(CONFIGURED, uid=1234)
    fake.add_image(NAMED_USER, username="nobody")
    fake.pulls[UNREACHABLE_IMAGE] = Pull(error="dial tcp 127.0.0.1:1: connect: connection refused")
    return World(fake, fake, folder, fake=fake)


class SilentRecorder:
    """Keeps nothing."""

    def wait(self, *_: object, **__: object) -> nullcontext[None]:
        return nullcontext()
