"""A container runtime in memory: a real implementation of RuntimeService and ImageService, without processes.

It refuses what cannot be (starting twice, creating in a dead sandbox, names that are taken), keeps its world when an
agent dies, and lives in the loop's time, so that tests with virtual time are instant. Tests script it (`program`,
`pulls`, `fail`, `hang`, `latency`, `down`), interfere (`kill`, `kill_sandbox`) and look at the world (`containers`,
`sandboxes`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.concurrency.clock import Clock, LoopClock
from glasslet.record.recorder import Recorder
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import (
    ExecTimeout,
    ImagePullFailed,
    NameReserved,
    NotInRuntime,
    RuntimeCallError,
    RuntimeRejected,
    RuntimeUnavailable,
)
from glasslet.runtime.model import (
    ContainerPhase,
    FilesystemUsage,
    Image,
    ObservedContainer,
    ObservedPod,
    ObservedSandbox,
    RuntimeCondition,
    RuntimeDisks,
    RuntimeInfo,
    RuntimeStatus,
)
from glasslet.runtime.protocols import RegistryAuth, RuntimeHint
from glasslet.runtime.spec import ContainerSpec, ExecResult, NamespaceMode, Resources, SandboxSpec
from tests.fakes.programs import RUNS_FOREVER, Command, Program, Pull
from tests.fakes.runtime_world import (
    POD_NAME,
    POD_NAMESPACE,
    FakeContainer,
    FakeSandbox,
    full_name,
    image_id,
    log_file,
    observe_container,
    observe_sandbox,
    runtime_id,
)
from tests.fakes.scripted_calls import ScriptedCalls

BUSYBOX = "docker.io/library/busybox:1.36"
KILLED = 137


class FakeRuntime(ScriptedCalls):
    """Both CRI services over one world. `strict` (default): removing what runs is refused, as only a wrong agent does
    it; a real runtime kills and removes, which `strict=False` does too."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        recorder: Recorder | None = None,
        images: Iterable[str] = (BUSYBOX,),
        strict: bool = True,
    ) -> None:
        super().__init__(recorder)
        self.clock = clock or LoopClock()
        self.strict = strict
        self.sandboxes: dict[SandboxID, FakeSandbox] = {}
        self.containers: dict[ContainerID, FakeContainer] = {}
        self.images: dict[str, Image] = {}
        self.pulls: dict[str, Pull] = {}
        self.pulled_with: list[tuple[str, RegistryAuth | None]] = []
        self.commands: dict[str, Command] = {}
        self.serves_hints = True
        self.conditions = {"RuntimeReady": True, "NetworkReady": True}
        self.pod_cidr = ""
        self.pause_image = ""
        self._programs: dict[str, list[Program]] = {}
        self._listeners: list[asyncio.Queue[RuntimeHint | RuntimeCallError]] = []
        self._numbers = itertools.count(1)
        for name in images:
            self.add_image(name)

    # -- scripting ---------------------------------------------------------------------------------------------------

    def program(self, container: str, *programs: Program) -> None:
        """What containers of that name do: the first instance the first program, later ones the last given."""
        self._programs[container] = list(programs)

    def add_image(self, name: str, *, size: int = 1_000_000, uid: int | None = None, username: str = "") -> Image:
        """The image is there."""
        name = full_name(name)
        image = Image(id=image_id(name), tags=(name,), size=size, uid=uid, username=username)
        self.images[name] = image
        return image

    def break_hints(self, error: RuntimeCallError | None = None) -> None:
        """Ends every open hint stream, as a restart of the runtime does."""
        for queue in self._listeners:
            queue.put_nowait(error or RuntimeUnavailable(Verb.GET_CONTAINER_EVENTS, "connection lost"))

    def send_hint(self, hint: RuntimeHint) -> None:
        """Tells all listeners, also what is not true."""
        for queue in self._listeners:
            queue.put_nowait(hint)

    # -- interference ------------------------------------------------------------------------------------------------

    def kill(self, container: ContainerID, *, code: int = KILLED, reason: str = "", message: str = "") -> None:
        """The main process of a running container dies by itself."""
        found = self.containers[container]
        if not found.running:
            raise AssertionError(f"test kills container {found.name}, which is {found.phase}")
        self._exit(found, code, reason=reason, message=message)

    def kill_sandbox(self, sandbox: SandboxID) -> None:
        """The sandbox process dies and takes its containers along."""
        found = self.sandboxes[sandbox]
        found.ready = False
        self._kill_all_in(found)
        self._hint(found.id, found.uid, "sandbox_stopped")

    def container(self, name: str, *, uid: str | None = None) -> FakeContainer:
        """The newest instance of that name."""
        found = [c for c in self.containers.values() if c.name == name and uid in (None, c.uid)]
        if not found:
            raise AssertionError(f"no container {name}; there are {sorted(c.name for c in self.containers.values())}")
        return max(found, key=lambda c: c.spec.attempt)

    def instances(self, name: str) -> list[FakeContainer]:
        """All instances of that name, oldest first."""
        return sorted((c for c in self.containers.values() if c.name == name), key=lambda c: c.spec.attempt)

    def running(self, uid: str | None = None) -> list[str]:
        """Names of running containers (of one pod), in start order."""
        found = [c for c in self.containers.values() if c.running and uid in (None, c.uid)]
        return [c.name for c in found]

    # -- RuntimeService ----------------------------------------------------------------------------------------------

    async def version(self) -> RuntimeInfo:
        await self._enter(Verb.VERSION)
        return RuntimeInfo(name="fake", version="1.0.0", api_version="v1")

    async def status(self, *, detailed: bool = False) -> RuntimeStatus:
        await self._enter(Verb.STATUS)
        conditions = (
            RuntimeCondition(type=kind, status=ok, reason="" if ok else "ScriptedNotReady")
            for kind, ok in self.conditions.items()
        )
        return RuntimeStatus(conditions=tuple(conditions))

    async def sandbox_image(self) -> str:
        await self._enter(Verb.STATUS)
        return self.pause_image

    async def update_pod_cidr(self, cidr: str) -> None:
        await self._enter(Verb.UPDATE_RUNTIME_CONFIG, cidr)
        self.pod_cidr = cidr

    async def run_sandbox(self, spec: SandboxSpec) -> SandboxID:
        await self._enter(Verb.RUN_POD_SANDBOX, spec.name)
        key = (spec.name, spec.namespace, spec.uid, spec.attempt)
        for other in self.sandboxes.values():
            if other.key == key:
                raise NameReserved(Verb.RUN_POD_SANDBOX, f"name {key} is reserved for {other.id}", owner=other.id)
        number = next(self._numbers)
        host = spec.security.namespaces.network is NamespaceMode.NODE
        ips = () if host else (f"10.99.{number // 250}.{number % 250 + 2}",)
        sandbox = FakeSandbox(SandboxID(runtime_id("sandbox", number)), spec, self.clock.now(), ips)
        self.sandboxes[sandbox.id] = sandbox
        self._hint(sandbox.id, sandbox.uid, "sandbox_started")
        return sandbox.id

    async def stop_sandbox(self, sandbox: SandboxID) -> None:
        await self._enter(Verb.STOP_POD_SANDBOX, sandbox)
        found = self._sandbox(Verb.STOP_POD_SANDBOX, sandbox)
        if found.ready:
            found.ready = False
            self._kill_all_in(found)
            self._hint(found.id, found.uid, "sandbox_stopped")

    async def update_sandbox(self, sandbox: SandboxID, overhead: Resources, resources: Resources) -> None:
        await self._enter(Verb.UPDATE_POD_SANDBOX_RESOURCES, sandbox)
        self._sandbox(Verb.UPDATE_POD_SANDBOX_RESOURCES, sandbox).resources = resources

    async def remove_sandbox(self, sandbox: SandboxID) -> None:
        await self._enter(Verb.REMOVE_POD_SANDBOX, sandbox)
        found = self.sandboxes.get(sandbox)
        if found is None:
            return
        if self.strict and found.ready:
            raise RuntimeRejected(Verb.REMOVE_POD_SANDBOX, f"sandbox {sandbox} is ready: stop it first")
        found.ready = False
        self._kill_all_in(found)
        for container in [c for c in self.containers.values() if c.sandbox is found]:
            del self.containers[container.id]
        del self.sandboxes[sandbox]
        self._hint(found.id, found.uid, "sandbox_removed")

    async def sandbox_status(self, sandbox: SandboxID) -> ObservedSandbox:
        await self._enter(Verb.POD_SANDBOX_STATUS, sandbox)
        return observe_sandbox(self._sandbox(Verb.POD_SANDBOX_STATUS, sandbox), details=True)

    async def create_container(self, sandbox: SandboxID, spec: ContainerSpec, pod: SandboxSpec) -> ContainerID:
        verb = Verb.CREATE_CONTAINER
        await self._enter(verb, spec.name)
        home = self._sandbox(verb, sandbox)
        if not home.ready:
            raise NotInRuntime(verb, f"sandbox {sandbox} is not running")
        if (pod.name, pod.namespace, pod.uid) != (home.spec.name, home.spec.namespace, home.spec.uid):
            raise RuntimeRejected(verb, f"sandbox {sandbox} belongs to {home.spec.namespace}/{home.spec.name}")
        image = self._find_image(spec.image)
        if image is None:
            raise NotInRuntime(verb, f'image "{spec.image}": not found')
        number = next(self._numbers)
        container = FakeContainer(
            ContainerID(runtime_id("container", number)),
            home,
            spec,
            self._next_program(spec.name),
            image,
            self.clock.now(),
            spec.resources,
        )
        for other in self.containers.values():
            if other.key == container.key:
                raise NameReserved(verb, f"name {container.key} is reserved for {other.id}", owner=other.id)
        self.containers[container.id] = container
        self._hint(container.id, container.uid, "container_created")
        return container.id

    async def start_container(self, container: ContainerID) -> None:
        verb = Verb.START_CONTAINER
        await self._enter(verb, container)
        found = self._container(verb, container)
        if found.phase is not ContainerPhase.CREATED:
            raise RuntimeRejected(verb, f"container {container} is {found.phase}, not created")
        if not found.sandbox.ready:
            raise RuntimeRejected(verb, f"sandbox of container {container} is not running")
        program = found.program
        if program.start_error:
            self._exit(found, 128, reason="StartError", message=program.start_error)
            raise RuntimeRejected(verb, program.start_error)
        found.phase, found.started_at = ContainerPhase.RUNNING, self.clock.now()
        self._write_log(found)
        if program.exit_after is not None:
            self._exit_later(found, program.exit_after, program.exit_code, program.reason, program.message)
        self._hint(found.id, found.uid, "container_started")

    async def stop_container(self, container: ContainerID, grace_seconds: int) -> None:
        await self._enter(Verb.STOP_CONTAINER, container)
        found = self._container(Verb.STOP_CONTAINER, container)
        if not found.running:
            return
        program = found.program
        if grace_seconds > 0 and not program.ignores_term:
            self._exit_later(found, program.term_takes, program.term_code, "", "")
        try:
            async with asyncio.timeout(max(0, grace_seconds)):
                await found.exited.wait()
        except TimeoutError:
            if found.running:
                self._exit(found, KILLED)

    async def remove_container(self, container: ContainerID) -> None:
        await self._enter(Verb.REMOVE_CONTAINER, container)
        found = self.containers.get(container)
        if found is None:
            return
        if found.running:
            if self.strict:
                raise RuntimeRejected(Verb.REMOVE_CONTAINER, f"container {container} is running: stop it first")
            self._exit(found, KILLED)
        del self.containers[container]
        self._hint(found.id, found.uid, "container_removed")

    async def container_status(self, container: ContainerID, sandbox: SandboxID | None = None) -> ObservedContainer:
        await self._enter(Verb.CONTAINER_STATUS, container)
        return observe_container(self._container(Verb.CONTAINER_STATUS, container), details=True)

    async def update_container(self, container: ContainerID, resources: Resources) -> None:
        await self._enter(Verb.UPDATE_CONTAINER_RESOURCES, container)
        found = self._container(Verb.UPDATE_CONTAINER_RESOURCES, container)
        if found.phase is ContainerPhase.EXITED:
            raise RuntimeRejected(Verb.UPDATE_CONTAINER_RESOURCES, f"container {container} has exited")
        found.resources = resources

    async def reopen_log(self, container: ContainerID) -> None:
        await self._enter(Verb.REOPEN_CONTAINER_LOG, container)
        found = self._running(Verb.REOPEN_CONTAINER_LOG, container)
        found.log_reopened += 1
        if (path := log_file(found)) is not None:
            path.touch()

    async def exec_sync(self, container: ContainerID, command: tuple[str, ...], timeout: float) -> ExecResult:
        await self._enter(Verb.EXEC_SYNC, container)
        found = self._running(Verb.EXEC_SYNC, container)
        line = " ".join(command)
        script = found.program.commands.get(line) or self.commands.get(line) or Command()
        if timeout and script.takes > timeout:
            await asyncio.sleep(timeout)
            raise ExecTimeout(Verb.EXEC_SYNC, f"command {command} timed out", code="DEADLINE_EXCEEDED")
        await asyncio.sleep(script.takes)
        return ExecResult(stdout=script.stdout, stderr=script.stderr, exit_code=script.exit_code)

    async def exec_url(
        self, container: ContainerID, command: tuple[str, ...], *, stdin: bool, stdout: bool, stderr: bool, tty: bool
    ) -> str:
        await self._enter(Verb.EXEC, container)
        self._running(Verb.EXEC, container)
        return f"http://127.0.0.1:1/exec/{next(self._numbers)}"

    async def attach_url(self, container: ContainerID, *, stdin: bool, stdout: bool, stderr: bool, tty: bool) -> str:
        await self._enter(Verb.ATTACH, container)
        self._running(Verb.ATTACH, container)
        return f"http://127.0.0.1:1/attach/{next(self._numbers)}"

    async def port_forward_url(self, sandbox: SandboxID, ports: tuple[int, ...]) -> str:
        await self._enter(Verb.PORT_FORWARD, sandbox)
        if not self._sandbox(Verb.PORT_FORWARD, sandbox).ready:
            raise RuntimeRejected(Verb.PORT_FORWARD, f"sandbox {sandbox} is not running")
        return f"http://127.0.0.1:1/portforward/{next(self._numbers)}"

    async def list_pods(self) -> tuple[ObservedPod, ...]:
        started = asyncio.get_running_loop().time()
        await self._enter(Verb.LIST_POD_SANDBOX)
        await self._enter(Verb.LIST_CONTAINERS)
        owners = [s.uid for s in self.sandboxes.values()] + [c.uid for c in self.containers.values()]
        uids = dict.fromkeys(uid for uid in owners if uid)
        return tuple(self._observe(PodUID(uid), started, details=False) for uid in uids)

    async def read_pod(self, uid: PodUID) -> ObservedPod | None:
        started = asyncio.get_running_loop().time()
        await self._enter(Verb.LIST_POD_SANDBOX, uid)
        await self._enter(Verb.LIST_CONTAINERS, uid)
        pod = self._observe(uid, started, details=True)
        return pod if pod.sandboxes or pod.containers else None

    async def hints(self, wanted: Callable[[RuntimeHint], bool] = bool) -> AsyncIterator[RuntimeHint]:
        await self._enter(Verb.GET_CONTAINER_EVENTS)
        if not self.serves_hints:
            raise RuntimeRejected(Verb.GET_CONTAINER_EVENTS, "unknown method", code="UNIMPLEMENTED")
        queue: asyncio.Queue[RuntimeHint | RuntimeCallError] = asyncio.Queue()
        self._listeners.append(queue)
        try:
            while True:
                hint = await queue.get()
                if isinstance(hint, RuntimeCallError):
                    raise hint
                yield hint
        finally:
            self._listeners.remove(queue)

    # -- ImageService ------------------------------------------------------------------------------------------------

    async def list_images(self) -> tuple[Image, ...]:
        await self._enter(Verb.LIST_IMAGES)
        return tuple({(image.id, image.runtime_handler): image for image in self.images.values()}.values())

    async def image_status(self, image: str, runtime_handler: str = "") -> Image | None:
        await self._enter(Verb.IMAGE_STATUS, image)
        return self._find_image(image)

    async def pull_image(self, image: str, auth: RegistryAuth | None, pod: SandboxSpec | None) -> str:
        await self._enter(Verb.PULL_IMAGE, image)
        script = self.pulls.get(image) or self.pulls.get(full_name(image)) or Pull()
        await asyncio.sleep(script.takes)
        self.pulled_with.append((image, auth))
        if script.error:
            raise ImagePullFailed(script.error, reason=script.reason)
        return (self._find_image(image) or self.add_image(image)).id

    async def remove_image(self, image: str, runtime_handler: str = "") -> None:
        await self._enter(Verb.REMOVE_IMAGE, image)
        found = self._find_image(image)
        if found is not None:
            gone = (found.id, runtime_handler)
            self.images = {name: i for name, i in self.images.items() if (i.id, i.runtime_handler) != gone}

    async def image_filesystems(self) -> tuple[FilesystemUsage, ...]:
        return (await self.disks()).images

    async def disks(self) -> RuntimeDisks:
        await self._enter(Verb.IMAGE_FS_INFO)
        used = sum(image.size for image in self.images.values())
        usage = FilesystemUsage(mountpoint="/fake", used_bytes=used, inodes_used=len(self.images))
        return RuntimeDisks(images=(usage,))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _sandbox(self, verb: Verb, sandbox: SandboxID) -> FakeSandbox:
        if (found := self.sandboxes.get(sandbox)) is None:
            raise NotInRuntime(verb, f'sandbox "{sandbox}": not found', code="NOT_FOUND")
        return found

    def _container(self, verb: Verb, container: ContainerID) -> FakeContainer:
        if (found := self.containers.get(container)) is None:
            raise NotInRuntime(verb, f'container "{container}": not found', code="NOT_FOUND")
        return found

    def _running(self, verb: Verb, container: ContainerID) -> FakeContainer:
        found = self._container(verb, container)
        if not found.running:
            raise RuntimeRejected(verb, f"container {container} is {found.phase}, not running")
        return found

    def _find_image(self, name: str) -> Image | None:
        if (found := self.images.get(full_name(name))) is not None:
            return found
        return next((i for i in self.images.values() if name in (i.id, *i.digests)), None)

    def _next_program(self, container: str) -> Program:
        programs = self._programs.get(container)
        if not programs:
            return RUNS_FOREVER
        return programs.pop(0) if len(programs) > 1 else programs[0]

    def _exit_later(self, container: FakeContainer, seconds: float, code: int, reason: str, message: str) -> None:
        if container.timer is not None:
            container.timer.cancel()
        loop = asyncio.get_running_loop()
        container.timer = loop.call_later(seconds, lambda: self._exit(container, code, reason=reason, message=message))

    def _exit(self, container: FakeContainer, code: int, *, reason: str = "", message: str = "") -> None:
        if container.timer is not None:
            container.timer.cancel()
        container.phase = ContainerPhase.EXITED
        container.finished_at = self.clock.now()
        container.exit_code = code
        container.reason = reason or ("Completed" if code == 0 else "Error")
        container.message = message
        container.exited.set()
        self._hint(container.id, container.uid, "container_stopped")

    def _kill_all_in(self, sandbox: FakeSandbox) -> None:
        for container in self.containers.values():
            if container.sandbox is sandbox and container.running:
                self._exit(container, KILLED)

    def _hint(self, subject: str, uid: str, kind: str) -> None:
        self.send_hint(RuntimeHint(id=subject, uid=PodUID(uid) if uid else None, kind=kind))

    def _observe(self, uid: PodUID, started: float, *, details: bool) -> ObservedPod:
        sandboxes = [s for s in self.sandboxes.values() if s.uid == uid]
        containers = [c for c in self.containers.values() if c.uid == uid]
        sandboxes.sort(key=lambda s: (s.created_at, s.spec.attempt), reverse=True)
        containers.sort(key=lambda c: (c.created_at, c.spec.attempt), reverse=True)
        labels: dict[str, str] = next(
            iter([s.spec.labels for s in sandboxes] + [c.spec.labels for c in containers]), {}
        )
        return ObservedPod(
            uid=uid,
            name=labels.get(POD_NAME, ""),
            namespace=labels.get(POD_NAMESPACE, ""),
            sandboxes=tuple(observe_sandbox(s, details=details) for s in sandboxes),
            containers=tuple(observe_container(c, details=details) for c in containers),
            observed_at=started,
        )

    def _write_log(self, container: FakeContainer) -> None:
        """CRI log lines, where the pod's log directory exists on this machine."""
        path = log_file(container)
        if path is None or not Path(container.sandbox.spec.log_directory).is_dir():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        stamp = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S.000000000Z")
        with path.open("a") as log:
            log.writelines(f"{stamp} stdout F {line}\n" for line in container.program.output)
