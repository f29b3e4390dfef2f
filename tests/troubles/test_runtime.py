"""A runtime, its network plugins and its disk in trouble: each on a containerd of its own that is really so."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import busybox_pod
from tests.fakes.containerd import NEWER, PrivateContainerd, cni_plugins, import_test_images, missing_requirement
from tests.fakes.cri_proxy import CRIProxy, Fault, hang
from tests.skips import on_purpose
from tests.troubles.table import Trouble, each_chosen
from tests.troubles.world import World, standalone_world

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.timeout(300),
    pytest.mark.skipif(NEWER, reason=on_purpose("the configuration is containerd 1.6's")),
]

AREA = "Runtime and network plugins"
SMALL = 24 * 1024 * 1024
"""Bytes of the disk that is too small for a large image: room for those of the tests and little more."""


class Sick(PrivateContainerd):
    """A containerd whose network plugins, runc and disk are ours to spoil. Its proxy passes on every call, but those
    that are to hang."""

    def __init__(self, folder: Path) -> None:
        self.plugins = folder / "bin"
        self.plugins.mkdir(parents=True)
        for plugin in Path(str(cni_plugins())).iterdir():
            (self.plugins / plugin.name).symlink_to(plugin)
        self.runc = folder / "runc-wrapper"
        super().__init__(folder)
        self.disk = folder / "root"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(self.disk)], check=True)
        self.well()

    def _configuration(self) -> str:
        text = super()._configuration().replace(f'bin_dir = "{cni_plugins()}"', f'bin_dir = "{self.plugins}"')
        options = f'  Root = "{self.folder}/runc"\n'
        return text.replace(options, f'{options}  BinaryName = "{self.runc}"\n')

    def well(self) -> None:
        """Nothing is wrong with it."""
        self.script(self.runc, 'exec runc "$@"')
        self.network(self._network())
        self.configure()

    def configure(self, *changed: tuple[str, str]) -> None:
        """Restarts it with texts of its configuration replaced, if that is another one than it has."""
        text = self._configuration()
        for old, new in changed:
            assert old in text
            text = text.replace(old, new)
        path = self.folder / "config.toml"
        if path.read_text() != text:
            path.write_text(text)
            if self._process is not None:
                self.kill()
                self.start()

    def network(self, content: dict[str, object] | str | None) -> None:
        """The configuration of its network. None: there is none."""
        path = self._networks / "10-test.conflist"
        if content is None:
            path.unlink()
            return
        # In place: this containerd passes over files that are only moved there.
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def plugin(self, kind: str, script: str = "", **fields: Any) -> None:
        """A network of this one plugin; `script`: its text, for one of ours."""
        if script:
            self.script(self.plugins / kind, script)
        self.network({"cniVersion": "0.4.0", "name": "troubled", "plugins": [{"type": kind, **fields}]})

    @staticmethod
    def script(path: Path, text: str) -> None:
        """A program that is replaced at once."""
        hidden = path.with_suffix(".new")
        hidden.write_text(f"#!/bin/sh\n{text}\n")
        hidden.chmod(0o755)
        hidden.rename(path)

    def signal(self, number: int) -> None:
        """Sends the daemon a signal."""
        assert self._process is not None
        os.kill(self._process.pid, number)


Spoil = Callable[[Sick], None]


def no_network(it: Sick) -> None:
    it.network(None)


def invalid_network(it: Sick) -> None:
    it.network('{"name": "troubled", "plugins": [')


def no_plugin(it: Sick) -> None:
    it.plugin("not-there")


def plugin_fails(it: Sick) -> None:
    it.plugin("fails", """echo '{"code": 11, "msg": "the controller of the network is away"}'; exit 1""")


def plugin_crashes(it: Sick) -> None:
    it.plugin("crashes", "kill -9 $$")


def plugin_hangs(it: Sick) -> None:
    it.plugin("hangs", '[ "$CNI_COMMAND" != ADD ] || sleep 40')


def no_addresses(it: Sick) -> None:
    ranges = [[{"subnet": "10.199.7.0/29", "rangeStart": "10.199.7.2", "rangeEnd": "10.199.7.2"}]]
    taken = it.folder / "taken" / "troubled"
    taken.mkdir(parents=True, exist_ok=True)
    (taken / "10.199.7.2").write_text("another-sandbox\neth0")
    it.plugin(
        "ptp",
        ipam={"type": "host-local", "dataDir": str(taken.parent), "ranges": ranges},
    )


def runc_fails(it: Sick) -> None:
    it.script(it.runc, 'echo "runc: the kernel is too old" >&2; exit 1')


def runc_gone(it: Sick) -> None:
    it.runc.unlink()


def systemd_cgroups(it: Sick) -> None:
    it.configure(("  BinaryName", "  SystemdCgroup = true\n  BinaryName"))


def no_shim(it: Sick) -> None:
    it.configure(('runtime_type = "io.containerd.runc.v2"', 'runtime_type = "io.containerd.absent.v2"'))


def sandbox(name: str, made: str, *says: str, quick: bool = False) -> Trouble:
    """A pod that gets no sandbox."""
    return Trouble(name=name, made=made, rule=Rule.SANDBOX, says=says, pod=lambda _: busybox_pod(name), quick=quick)


OF_PODS: dict[Trouble, Spoil] = {
    Trouble(name="cni-none-pod", made="a pod starts while the folder of CNI configurations is empty",
            rule=Rule.NETWORK_NOT_READY, says=("gets no network: there is no CNI configuration in",),
            pod=lambda _: busybox_pod("cni-none-pod")): no_network,
    sandbox("cni-no-plugin", "the network plugin of the configuration is not installed",
            "network plugin not-there is not installed in", quick=True): no_plugin,
    sandbox("cni-fails", "the network plugin ends with an error",
            "network plugin fails failed: the controller of the network is away"): plugin_fails,
    sandbox("cni-crashes", "the network plugin is killed", "network plugin crashes")
    : plugin_crashes,
    sandbox("cni-no-addresses", "the network has no free address left", "has no free address left in 10.199.7.2")
    : no_addresses,
    sandbox("runc-fails", "runc ends with an error", "the program that makes containers, ",
            "runc-wrapper, failed: exit status 1")
    : runc_fails,
    sandbox("runc-gone", "runc is not there", "the runtime's program ", "runc-wrapper does not exist"): runc_gone,
    sandbox("cgroup-driver", "the runtime makes cgroups by systemd, the agent by itself",
            "the runtime's cgroup driver is systemd, this agent's is cgroupfs"): systemd_cgroups,
    sandbox("shim-gone", "the runtime's shim is not installed", "shim containerd-shim-absent-v2 is not installed")
    : no_shim,
    Trouble(name="cni-hangs", made="the network plugin hangs", rule=Rule.WAITING,
            says=("waits for the runtime's answer to RunPodSandbox", "below it network plugin hangs (pid "),
            pod=lambda _: busybox_pod("cni-hangs")): plugin_hangs,
}  # fmt: skip


def kill(it: Sick) -> None:
    it.kill()


def kill_and_remove(it: Sick) -> None:
    it.kill()
    it.socket.unlink()


def freeze(it: Sick) -> None:
    it.signal(signal.SIGSTOP)


def node(name: str, made: str, rule: Rule, *says: str, quick: bool = False) -> Trouble:
    """A node that is not ready for its runtime."""
    return Trouble(name=name, made=made, rule=rule, says=("NotReady: ", *says), quick=quick)


OF_NODES: dict[Trouble, Spoil] = {
    node("cni-none", "the folder of CNI configurations is empty", Rule.NETWORK_NOT_READY,
         "pods get no network: there is no CNI configuration in", "net.d", quick=True): no_network,
    node("cni-invalid", "the CNI configuration is no JSON", Rule.NETWORK_NOT_READY,
         "pods get no network: CNI configuration ", "10-test.conflist cannot be used: "): invalid_network,
    node("runtime-killed", "containerd is killed", Rule.RUNTIME_DOWN,
         "the container runtime does not run: no process listens on ", "containerd.sock"): kill,
    node("runtime-no-socket", "containerd is gone, with its socket", Rule.RUNTIME_DOWN,
         "the container runtime does not run: there is no socket at ", "containerd.sock"): kill_and_remove,
    node("runtime-hangs", "containerd is stopped (SIGSTOP)", Rule.RUNTIME_DOWN,
         "the container runtime does not answer"): freeze,
}  # fmt: skip
HANGING_CALL = Trouble(
    name="runtime-call-hangs",
    made="one call of the runtime hangs, CreateContainer of one pod",
    rule=Rule.WAITING,
    says=("waits for the runtime's answer to CreateContainer",),
    pod=lambda _: busybox_pod("runtime-call-hangs"),
)
DISK_FULL = Trouble(
    name="runtime-disk-full",
    made="the runtime's disk is full when a pod starts",
    rule=Rule.SANDBOX,
    says=("no space is left on the runtime's disk",),
    pod=lambda _: busybox_pod("runtime-disk-full"),
)
IMAGE_DISK_FULL = Trouble(
    name="image-disk-full",
    made="an image does not fit on the runtime's disk",
    rule=Rule.IMAGE_FAILED,
    says=("no space is left on the runtime's disk",),
    pod=lambda world: with_image("image-disk-full", world.registry.name("team/large", "1")),
)
TROUBLES = (*OF_NODES, *OF_PODS, HANGING_CALL, DISK_FULL, IMAGE_DISK_FULL)


def with_image(name: str, image: str) -> dict[str, Any]:
    made = busybox_pod(name)
    made["spec"]["containers"][0] |= {"image": image, "imagePullPolicy": "IfNotPresent"}
    return made


@contextlib.contextmanager
def proxied(target: Path, socket: Path) -> Iterator[tuple[CRIProxy, asyncio.AbstractEventLoop]]:
    """A proxy before the runtime in a thread of its own, with its loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    proxy, up, over = CRIProxy(target), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with proxy.serving(socket):
            up.set()
            await over.wait()

    served = asyncio.run_coroutine_threadsafe(serve(), loop)
    assert up.wait(20)
    try:
        yield proxy, loop
    finally:
        loop.call_soon_threadsafe(over.set)
        served.result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def sick() -> Iterator[Sick]:
    if (missing := missing_requirement()) is not None:
        pytest.skip(f"REAL CONTAINERD TESTS NOT RUN: {missing}")
    made = Sick(Path(tempfile.mkdtemp(prefix="glt-")))
    try:
        made.start()
        import_test_images(made)
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def world(sick: Sick, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with standalone_world(sick, tmp_path_factory.mktemp("r")) as made:
        yield made


@pytest.fixture(autouse=True)
def well_again(world: World, sick: Sick) -> Iterator[None]:
    yield
    for manifest in world.agent.manifests.iterdir():
        manifest.unlink()
    sick.well()
    with contextlib.suppress(ProcessLookupError, AssertionError):
        sick.signal(signal.SIGCONT)
    if sick._process is None:
        sick.start()
    asyncio.run(world.agent.wait_until_ready(30))


@each_chosen(tuple(OF_PODS))
def test_a_pod_without_a_sandbox_gets_the_cause(world: World, sick: Sick, trouble: Trouble) -> None:
    OF_PODS[trouble](sick)
    if trouble.rule is Rule.NETWORK_NOT_READY:
        asyncio.run(until_not_ready(world))
    world.put(trouble)
    world.shows(trouble)


async def until_not_ready(world: World) -> None:
    async with asyncio.timeout(60):
        while (await world.agent.ask("/glass/v1/agent")).get("ready"):
            await asyncio.sleep(0.1)


@each_chosen(tuple(OF_NODES))
def test_a_runtime_in_trouble_is_the_nodes_with_its_cause(world: World, sick: Sick, trouble: Trouble) -> None:
    OF_NODES[trouble](sick)
    verdict = world.shows(trouble, "/node/why")
    assert verdict["nextStep"]


@each_chosen((IMAGE_DISK_FULL,))
def test_an_image_that_does_not_fit_says_so(world: World, trouble: Trouble) -> None:
    world.registry.add("team/large", "1", marker="large", filler=2 * SMALL)
    world.put(trouble)
    world.shows(trouble)


@each_chosen((DISK_FULL,))
def test_a_container_that_does_not_fit_on_the_runtimes_disk_says_so(world: World, sick: Sick, trouble: Trouble) -> None:
    filler = sick.disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    try:
        world.put(trouble)
        world.shows(trouble)
    finally:
        filler.unlink()


@each_chosen((HANGING_CALL,))
def test_a_call_that_hangs_is_named(sick: Sick, world: World, tmp_path: Path, trouble: Trouble) -> None:
    world.agent.kill()
    try:
        with (
            proxied(sick.socket, tmp_path / "cri.sock") as (proxy, loop),
            standalone_world(sick, tmp_path / "h", containerRuntimeEndpoint=f"unix://{tmp_path}/cri.sock") as behind,
        ):
            loop.call_soon_threadsafe(proxy.add, Fault(hang, verb="CreateContainer"))
            behind.put(trouble)
            behind.shows(trouble)
            loop.call_soon_threadsafe(proxy.heal)
    finally:
        world.agent.start()
