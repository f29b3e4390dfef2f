"""Volumes of a node on the kernel's own file systems and mounts, below one directory; agents on it can be killed at any
step. Needs root."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from glasslet.api.configdata import ConfigMap, Secret
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import LoopClock
from glasslet.host.files.layout import LogLayout, RootLayout
from glasslet.host.files.pod_files import PodFiles
from glasslet.host.mounts.syscalls import Mounts
from glasslet.host.threads import HERE, ThreadPlace
from glasslet.record.stations import WaitKind
from glasslet.volumes.claim_notes import ClaimNotes
from glasslet.volumes.claims import Claims
from glasslet.volumes.data_sources import NoCluster
from glasslet.volumes.file_volume import FileVolumes, Memory
from glasslet.volumes.group_owner import GroupOwner
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.pod_binds import PodBinds
from glasslet.volumes.types.config_map import ConfigMapVolume
from glasslet.volumes.types.empty_dir import EmptyDir
from glasslet.volumes.types.host_path import HostPath
from glasslet.volumes.types.local import LocalVolume
from glasslet.volumes.types.projected import ProjectedVolume, Projections
from glasslet.volumes.types.secret import SecretVolume
from tests.fakes.api_server import FakeAPIServer

T = TypeVar("T")

_CHANGING = ("mkdir", "rmdir", "unlink", "rename", "replace", "symlink", "chown", "chmod")


class Killed(BaseException):
    """The agent is dead: nothing of it runs any more."""


class Steps:
    """Counts the steps of an agent and kills it before the one with the number `at`."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.passed = 0
        self.dead = False

    def step(self) -> None:
        if self.dead or self.passed == self.at:
            self.dead = True
            raise Killed
        self.passed += 1


class SteppingThreads:
    """Runs calls in place, a step before and after each."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    async def run(
        self,
        call: Callable[[], T],
        *,
        on: str,
        key: str = "",
        kind: WaitKind = WaitKind.VOLUME,
        within: float = 30.0,
        place: ThreadPlace = HERE,
    ) -> T:
        await asyncio.sleep(0)
        self._steps.step()
        answer = call()
        await asyncio.sleep(0)
        self._steps.step()
        return answer


class SteppingMounts(Mounts):
    """The kernel's mounts, a step before and after each change."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    def _around(self, change: Callable[[], None]) -> None:
        self._steps.step()
        change()
        self._steps.step()

    def mount_tmpfs(self, target: str, *, size: int = 0) -> None:
        self._around(lambda: Mounts.mount_tmpfs(self, target, size=size))

    def bind(self, source: str, target: str) -> None:
        self._around(lambda: Mounts.bind(self, source, target))

    def set_options(self, target: str, options: Iterable[str]) -> None:
        self._around(lambda: Mounts.set_options(self, target, options))

    def unmount(self, target: str, *, force: bool = False) -> None:
        self._around(lambda: Mounts.unmount(self, target, force=force))


class SteppingClient:
    """An API server, a step before and after each question."""

    def __init__(self, server: FakeAPIServer, steps: Steps) -> None:
        self._server = server
        self._steps = steps

    async def get(self, path: str, kind: type[T]) -> T:
        self._steps.step()
        answer = await self._server.get(path, kind)
        self._steps.step()
        return answer


class Data(NoCluster):
    """ConfigMaps and Secrets of the one name `data`, holding `content`."""

    def __init__(self, content: dict[str, bytes]) -> None:
        self.content = content

    async def config_map(self, namespace: str, name: str) -> ConfigMap:
        return ConfigMap(binary_data=dict(self.content))

    async def secret(self, namespace: str, name: str) -> Secret:
        return Secret(data=dict(self.content))


class Machine:
    """What outlives an agent. `disk` is what the claim `c` leads to, through the volume `pv-1`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kubelet = root / "kubelet"
        self.disk = root / "disk"
        self.disk.mkdir(parents=True)
        (self.disk / "precious").write_text("kept")
        self.data = Data({"key": b"value"})
        self.server = FakeAPIServer()
        claim = {"metadata": {"name": "c", "namespace": "default", "uid": "c-uid"}, "spec": {"volumeName": "pv-1"}}
        self.server.put("persistentvolumeclaims", claim | {"status": {"phase": "Bound"}})
        spec = {"local": {"path": str(self.disk)}, "claimRef": {"uid": "c-uid"}}
        self.server.put("persistentvolumes", {"metadata": {"name": "pv-1"}, "spec": spec})

    def mounted(self) -> list[str]:
        return [os.path.relpath(e.path, self.root) for e in Mounts().table().at_or_below(str(self.root))]

    def pods(self) -> list[str]:
        """Folders of pods that are there."""
        path = self.kubelet / "pods"
        return sorted(os.listdir(path)) if path.exists() else []

    def clean(self) -> None:
        for entry in Mounts().table().at_or_below(str(self.root)):
            Mounts().unmount(entry.path)

    def volumes(self, steps: Steps) -> VolumeManager:
        """Those of a new agent."""
        root, threads, mounts = RootLayout(str(self.kubelet)), SteppingThreads(steps), SteppingMounts(steps)

        def emit(*_: Any) -> None:
            return

        def no_limit(_: Pod) -> int:
            return 0

        files = FileVolumes(
            root=root,
            mounts=mounts,
            threads=threads,
            clock=LoopClock(),
            memory=Memory(pod_limit=no_limit, allocatable=lambda: 1 << 30),
        )
        binds = PodBinds(
            root=root, mounts=mounts, threads=threads, groups=GroupOwner(threads=threads, emit=emit), emit=emit
        )
        nothing = NoCluster()
        projections = Projections(objects=self.data, tokens=nothing, field_text=lambda item, pod: "text")
        return VolumeManager(
            root=root,
            plugins={
                "emptyDir": EmptyDir(
                    root=root,
                    mounts=mounts,
                    threads=threads,
                    pod_memory_limit=no_limit,
                    allocatable_memory=lambda: 1 << 30,
                ),
                "hostPath": HostPath(threads=threads),
                "configMap": ConfigMapVolume(volumes=files, objects=self.data),
                "secret": SecretVolume(volumes=files, objects=self.data),
                "projected": ProjectedVolume(volumes=files, projections=projections),
                "local": LocalVolume(root=root, mounts=mounts, threads=threads, binds=binds),
            },
            claims=Claims(
                client=SteppingClient(self.server, steps),
                notes=ClaimNotes(root=root, threads=threads),
                node="here",
                labels=dict,
            ),
            mounts=mounts,
            threads=threads,
        )

    def files(self, steps: Steps) -> PodFiles:
        """Those of a new agent."""
        return PodFiles(
            root=RootLayout(str(self.kubelet)),
            logs=LogLayout(pod_logs_dir=str(self.root / "logs"), links_dir=str(self.root / "links")),
            hostname=lambda pod: (pod.metadata.name, ""),
            threads=SteppingThreads(steps),
            clock=LoopClock(),
        )


def watch_files(steps: Steps, root: Path, patch: Callable[[object, str, object], None]) -> None:
    """Makes every change of a directory below `root` a step too. `patch(module, name, value)` undoes itself."""
    for name in _CHANGING:
        patch(os, name, _stepping(getattr(os, name), steps, str(root)))


def _stepping(real: Callable[..., Any], steps: Steps, root: str) -> Callable[..., Any]:
    def change(path: Any, *args: Any, **options: Any) -> Any:
        inside = str(path).startswith(root) or (args and str(args[0]).startswith(root))
        if inside or options.get("dir_fd") is not None or options.get("src_dir_fd") is not None:
            steps.step()
        return real(path, *args, **options)

    return change
