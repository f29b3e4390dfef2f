"""What a container really sees of its manifest: specifications, pod files and volumes together on a real containerd."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.object import ContainerID, SandboxID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.concurrency.clock import SystemClock
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.layout import LogLayout, RootLayout
from glasslet.host.files.pod_files import PodFiles
from glasslet.host.machine import read_machine
from glasslet.host.mounts.syscalls import Mounts
from glasslet.host.resolver import ResolverFile
from glasslet.host.threads import HostThreads
from glasslet.podspec.container import container_spec
from glasslet.podspec.dns import dns_config
from glasslet.podspec.hostname import pod_hostname
from glasslet.podspec.mounts import sub_paths
from glasslet.podspec.pod_level import pod_memory_limit
from glasslet.podspec.request import ContainerRequest, NodeFacts, SandboxRequest
from glasslet.podspec.sandbox import sandbox_spec
from glasslet.runtime.cri.connection import CRIConnection, connect
from glasslet.runtime.model import ContainerPhase, ObservedContainer
from glasslet.runtime.spec import SandboxSpec
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.types.empty_dir import EmptyDir
from glasslet.volumes.types.host_path import HostPath
from tests.builders.podspec import pod_of
from tests.fakes.claims import NO_CLAIMS
from tests.fakes.containerd import BUSYBOX, CONFIGURED, PrivateContainerd, Silent
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.containerd


class RealPod:
    """One pod on a real runtime, made step by step as a worker would."""

    def __init__(self, root: Path, connection: CRIConnection, pod: Pod) -> None:
        self.root, self.pod = root, pod
        self.runtime, self.images = connection.runtime, connection.images
        machine, layout = read_machine(), RootLayout(str(root / "root"))
        self.node = NodeFacts(
            name="node-1",
            root_dir=layout.root_dir,
            pod_logs_dir=str(root / "logs"),
            host_ips=("192.0.2.1",),
            memory_capacity=machine.memory_capacity,
            cluster_dns=("10.96.0.10",),
            cluster_domain="cluster.local",
            resolver=ResolverFile(searches=("example.org",)),
            cgroup_v2=machine.cgroup_v2,
            hugepage_sizes=machine.hugepage_sizes,
            swap_controller=machine.swap_controller,
            masked_paths=machine.masked_paths,
        )
        threads, mounts = HostThreads(recorder=WaitLog()), Mounts()
        self.files = PodFiles(
            root=layout,
            logs=LogLayout(self.node.pod_logs_dir, str(root / "links")),
            hostname=partial(pod_hostname, cluster_domain=self.node.cluster_domain),
            threads=threads,
            clock=SystemClock(),
        )
        empty_dir = EmptyDir(
            root=layout,
            mounts=mounts,
            threads=threads,
            pod_memory_limit=pod_memory_limit,
            allocatable_memory=lambda: machine.memory_capacity,
        )
        plugins: dict[str, Any] = {"emptyDir": empty_dir, "hostPath": HostPath(threads=threads)}
        self.manager = VolumeManager(root=layout, claims=NO_CLAIMS, plugins=plugins, mounts=mounts, threads=threads)
        self.sandbox: tuple[SandboxID, SandboxSpec] | None = None
        self.volumes: dict[str, MountedVolume] = {}

    async def begin(self) -> None:
        await self.files.prepare(self.pod)
        self.volumes = dict(await self.manager.prepare(self.pod))
        spec = sandbox_spec(
            SandboxRequest(pod=self.pod, attempt=0, node=self.node, dns=dns_config(self.pod, self.node))
        )
        self.sandbox = (await self.runtime.run_sandbox(spec), spec)

    async def start(self, index: int = 0, attempt: int = 0) -> ContainerID:
        assert self.sandbox is not None
        container = self.pod.spec.containers[index]
        image = await self.images.image_status(container.image)
        assert image is not None
        ips = (await self.runtime.sandbox_status(self.sandbox[0])).ips

        def request(**more: Any) -> ContainerRequest:
            return ContainerRequest(
                pod=self.pod,
                container=container,
                attempt=attempt,
                image=image,
                node=self.node,
                pod_ips=ips,
                volumes=self.volumes,
                **more,
            )

        wanted = sub_paths(request())
        bound = await self.manager.bind_sub_paths(pod_ref(self.pod), container.name, self.volumes, wanted)
        spec = container_spec(
            request(
                etc_hosts=await self.files.etc_hosts(self.pod, ips),
                termination_log=await self.files.termination_log(self.pod, container),
                sub_paths=bound,
            )
        )
        made = await self.runtime.create_container(self.sandbox[0], spec, self.sandbox[1])
        await self.runtime.start_container(made)
        return made

    async def says(self, container: ContainerID, script: str) -> str:
        """Standard output of a shell script inside."""
        result = await self.runtime.exec_sync(container, ("/bin/sh", "-c", script), 100)
        assert result.exit_code == 0, result.stderr
        return result.stdout.decode()

    async def ended(self, container: ContainerID) -> ObservedContainer:
        """The container once it has exited."""
        async with asyncio.timeout(60):
            while (found := await self.runtime.container_status(container)).phase is not ContainerPhase.EXITED:
                await asyncio.sleep(0.05)
        return found

    async def end(self) -> None:
        if self.sandbox is not None:
            await self.runtime.stop_sandbox(self.sandbox[0])
            await self.runtime.remove_sandbox(self.sandbox[0])
        await self.manager.tear_down(pod_ref(self.pod))
        await self.files.remove(pod_ref(self.pod))


Start = Callable[..., Any]


@pytest.fixture
def running(containerd: PrivateContainerd, tmp_path: Path) -> Start:
    """A context with the pod's sandbox up; afterwards nothing of the pod is left."""

    @asynccontextmanager
    async def context(pod: Pod) -> AsyncIterator[RealPod]:
        connection = await connect(containerd.endpoint, recorder=WaitLog(), metrics=Silent())
        real = RealPod(Path(os.path.realpath(tmp_path)), connection, pod)
        try:
            await real.begin()
            yield real
        finally:
            await real.end()
            await connection.close()

    return context


SLEEP: dict[str, Any] = {
    "image": BUSYBOX,
    "command": ["/bin/sh", "-c", "trap exit TERM; while true; do sleep 0.1; done"],
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}


async def test_a_container_has_its_names_addresses_and_environment(running: Start) -> None:
    env = [
        {"name": "A", "value": "one"},
        {"name": "B", "value": "$(A) and $$(A)"},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
    ]
    container = SLEEP | {"env": env, "workingDir": "/var", "resources": {"limits": {"memory": "64Mi", "cpu": "500m"}}}
    async with running(pod_of(container, hostname="db-0", subdomain="db")) as pod:
        made = await pod.start()
        ip = (await pod.runtime.sandbox_status(pod.sandbox[0])).ips[0]
        assert (await pod.says(made, "hostname; echo $B; echo $IP; echo $MEM; pwd")).split("\n")[:5] == [
            "db-0",
            "one and $(A)",
            ip,
            "64",
            "/var",
        ]
        hosts = await pod.says(made, "cat /etc/hosts")
        assert hosts.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
        assert hosts.endswith(f"{ip}\tdb-0.db.default.svc.cluster.local\tdb-0\n")
        assert (await pod.says(made, "cat /etc/resolv.conf")).splitlines() == [
            "search default.svc.cluster.local svc.cluster.local cluster.local example.org",
            "nameserver 10.96.0.10",
            "options ndots:5",
        ]


async def test_volumes_show_what_the_manifest_says(running: Start, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "note").write_text("from the node")
    mounts = [
        {"name": "data", "mountPath": "/data"},
        {"name": "data", "mountPath": "/part", "subPathExpr": "$(WHO)/part"},
        {"name": "mem", "mountPath": "/mem"},
        {"name": "own", "mountPath": "/own", "readOnly": True},
        {"name": "own", "mountPath": "/note", "subPath": "note"},
    ]
    volumes = [
        {"name": "data", "emptyDir": {}},
        {"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "2Mi"}},
        {"name": "own", "hostPath": {"path": str(own), "type": "Directory"}},
    ]
    container = SLEEP | {"volumeMounts": mounts, "env": [{"name": "WHO", "value": "main"}]}
    async with running(pod_of(container, volumes=volumes)) as pod:
        made = await pod.start()
        assert await pod.says(made, "echo x > /part/file; cat /data/main/part/file") == "x\n"
        assert (await pod.says(made, "df -k /mem | tail -1 | awk '{print $2}'")).strip() == "2048"
        assert await pod.says(made, "cat /own/note /note") == "from the node" * 2
        assert await pod.says(made, "touch /own/new 2>/dev/null || echo refused") == "refused\n"
    assert (own / "note").read_text() == "from the node"


async def test_security_settings_hold_inside(running: Start) -> None:
    context = {
        "runAsUser": 1000,
        "runAsGroup": 2000,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    container = SLEEP | {"securityContext": context, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    pod_context = {"fsGroup": 3000, "supplementalGroups": [4000]}
    volumes = [{"name": "data", "emptyDir": {}}]
    async with running(pod_of(container, volumes=volumes, securityContext=pod_context)) as pod:
        made = await pod.start()
        assert (await pod.says(made, "id -u; id -g; id -G")).split() == ["1000", "2000", "2000", "3000", "4000"]
        assert await pod.says(made, "touch /x 2>/dev/null || echo refused") == "refused\n"
        assert await pod.says(made, "touch /data/mine; stat -c %g /data/mine") == "3000\n"
        status = dict(line.split(":\t", 1) for line in (await pod.says(made, "cat /proc/self/status")).splitlines())
        assert (status["NoNewPrivs"], status["CapEff"]) == ("1", "0" * 16)
        assert await pod.says(made, "cat /proc/timer_list /proc/keys | wc -c") == "0\n"


async def test_the_images_user_and_command_hold_where_the_manifest_says_nothing(running: Start) -> None:
    async with running(pod_of({"image": CONFIGURED, "args": ["hello"]})) as pod:
        made = await pod.start()
        found = await pod.ended(made)
        assert found.exit_code == 0
        async with asyncio.timeout(60):  # the runtime writes what was said a moment after the end
            while "hello" not in Path(found.log_path).read_text():
                await asyncio.sleep(0.05)
        assert found.log_path == f"{pod.node.pod_logs_dir}/default_web_uid-1/main/0.log"


async def test_resources_reach_the_kernel(running: Start) -> None:
    resources = {"requests": {"cpu": "250m", "memory": "32Mi"}, "limits": {"cpu": "500m", "memory": "64Mi"}}
    async with running(pod_of(SLEEP | {"resources": resources})) as pod:
        made = await pod.start()
        # The machine may forbid scores below the agent's own; a burstable one is far above.
        assert int(await pod.says(made, "cat /proc/1/oom_score_adj")) >= 900
        if pod.node.cgroup_v2:
            assert await pod.says(made, "cat /sys/fs/cgroup/memory.max") == f"{64 << 20}\n"
        else:
            assert await pod.says(made, "cat /sys/fs/cgroup/memory/memory.limit_in_bytes") == f"{64 << 20}\n"
            cpu = "/sys/fs/cgroup/cpu"
            assert (await pod.says(made, f"cat {cpu}/cpu.shares {cpu}/cpu.cfs_quota_us")).split() == ["256", "50000"]


async def test_last_words_are_read_for_each_instance(running: Start) -> None:
    container = SLEEP | {
        "command": ["/bin/sh", "-c", "echo output; echo $(cat /data/n) > /dev/termination-log; exit 3"]
    }
    container |= {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    async with running(pod_of(container, volumes=[{"name": "data", "emptyDir": {}}])) as pod:
        instances = []
        for attempt in range(2):
            Path(pod.volumes["data"].path, "n").write_text(f"words {attempt}")
            instances.append(await pod.ended(await pod.start(attempt=attempt)))
        for attempt, instance in enumerate(instances):
            words = await pod.files.termination_message(pod.pod, pod.pod.spec.containers[0], instance)
            assert words == f"words {attempt}\n"
        assert pod.files.last_attempt(pod_ref(pod.pod), "main") == 1


async def test_output_stands_in_for_missing_last_words(running: Start) -> None:
    container = SLEEP | {
        "command": ["/bin/sh", "-c", "echo it broke; exit 3"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    async with running(pod_of(container)) as pod:
        instance = await pod.ended(await pod.start())
        words = ""
        async with asyncio.timeout(60):  # the runtime writes what was said a moment after the end
            while not words:
                words = await pod.files.termination_message(pod.pod, pod.pod.spec.containers[0], instance)
        assert words == "it broke\n"


async def test_host_namespaces_are_shared_on_request(running: Start) -> None:
    spec: dict[str, Any] = {"hostNetwork": True, "hostPID": True, "hostIPC": True, "dnsPolicy": "Default"}
    async with running(pod_of(SLEEP, **spec)) as pod:
        made = await pod.start()
        for space in ("net", "pid", "ipc"):
            inside = await pod.says(made, f"readlink /proc/self/ns/{space}")
            assert inside.strip() == os.readlink(f"/proc/self/ns/{space}")
        assert (await pod.says(made, "head -1 /etc/hosts")).strip() == "# Kubernetes-managed hosts file (host network)."


async def test_shared_processes_see_each_other(running: Start) -> None:
    async with running(pod_of(SLEEP, SLEEP, shareProcessNamespace=True)) as pod:
        first, second = await pod.start(0), await pod.start(1)
        spaces = {await pod.says(container, "readlink /proc/self/ns/pid") for container in (first, second)}
        assert len(spaces) == 1
        assert "sleep 0.1" not in await pod.says(first, "tr '\\0' ' ' < /proc/1/cmdline")
