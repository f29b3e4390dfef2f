"""A node with volumes that are made of files."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.times import rfc3339
from glasslet.api.volume import DownwardAPIVolumeFile
from glasslet.concurrency.clock import LoopClock
from glasslet.host.files.layout import RootLayout
from glasslet.kubeapi.objects.pod_objects import Detection, build_pod_objects
from glasslet.kubeapi.objects.tokens import ServiceAccountTokens
from glasslet.kubeapi.objects.trust_bundles import TrustBundles
from glasslet.podspec.downward import file_text
from glasslet.podspec.errors import ConfigError
from glasslet.volumes.data_sources import NoCluster
from glasslet.volumes.file_volume import FileVolumes, Memory
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.plugin import VolumeProblem
from glasslet.volumes.types.config_map import ConfigMapVolume
from glasslet.volumes.types.downward_api import DownwardAPIVolume
from glasslet.volumes.types.projected import ProjectedVolume, Projections
from glasslet.volumes.types.secret import SecretVolume
from tests.builders.podspec import node_facts, pod_of
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.claims import NO_CLAIMS
from tests.fakes.inline_threads import InlineThreads
from tests.fakes.mounts import FakeMounts
from tests.fakes.waits import WaitLog

REF = PodRef("default", "web", PodUID("uid-1"))
VOLUMES = "pods/uid-1/volumes"
NOTES = "pods/uid-1/plugins/kubernetes.io~empty-dir"
TOKEN = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
ACCESS = {
    "projected": {
        "defaultMode": 0o644,
        "sources": [
            TOKEN,
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ],
    }
}


def field_text(item: DownwardAPIVolumeFile, pod: Pod, /) -> str:
    try:
        return file_text(item, pod, node_facts())
    except ConfigError as error:
        raise VolumeProblem(error.message) from error


class Node:
    """One agent's volumes. `strategy` Get: every look asks the server."""

    def __init__(self, root: Path, *, server: FakeAPIServer | None = None, trust_bundles: bool = False) -> None:
        self.root = root
        self.clock = LoopClock()
        self.server = server or FakeAPIServer(clock=self.clock)
        self.mounts = FakeMounts()
        self.objects = build_pod_objects(
            Detection(strategy="Get", sync_frequency=60.0, on_change=lambda uid: None),
            client=self.server,
            recorder=WaitLog(),
            clock=self.clock,
        )
        tokens = ServiceAccountTokens(client=self.server, recorder=WaitLog(), clock=self.clock)
        self.bundles = TrustBundles(client=self.server, recorder=WaitLog(), on_change=lambda: None)
        self.manager = self._manager(
            Projections(
                objects=self.objects,
                tokens=tokens,
                field_text=field_text,
                anchors=self.bundles if trust_bundles else None,
            )
        )

    def _manager(self, sources: Projections) -> VolumeManager:
        layout, threads = RootLayout(str(self.root)), InlineThreads()
        memory = Memory(pod_limit=lambda pod: 1 << 20, allocatable=lambda: 1 << 30)
        volumes = FileVolumes(root=layout, mounts=self.mounts, threads=threads, clock=self.clock, memory=memory)
        plugins = {
            "configMap": ConfigMapVolume(volumes=volumes, objects=sources.objects),
            "secret": SecretVolume(volumes=volumes, objects=sources.objects),
            "downwardAPI": DownwardAPIVolume(volumes=volumes, field_text=field_text),
            "projected": ProjectedVolume(volumes=volumes, projections=sources),
        }
        return VolumeManager(root=layout, claims=NO_CLAIMS, plugins=plugins, mounts=self.mounts, threads=threads)

    def standalone(self) -> VolumeManager:
        """The volumes of an agent without API server on the same machine."""
        nothing = NoCluster()
        return self._manager(Projections(objects=nothing, tokens=nothing, field_text=field_text))

    def files(self, kind: str, name: str = "v") -> dict[str, str]:
        """What a container reads in the volume."""
        path = self.root / VOLUMES / f"kubernetes.io~{kind}" / name
        data = path / "..data"
        return {str(one.relative_to(data)): one.read_text() for one in data.rglob("*") if one.is_file()}

    def mode(self, kind: str, file: str, name: str = "v") -> int:
        return stat.S_IMODE((self.root / VOLUMES / f"kubernetes.io~{kind}" / name / file).stat().st_mode)

    def answer_tokens(self) -> None:
        """Service accounts get numbered tokens."""
        given = 0

        def give(path: str, body: dict[str, Any]) -> dict[str, Any]:
            nonlocal given
            given += 1
            expires = self.clock.now() + timedelta(seconds=body["spec"]["expirationSeconds"])
            return {**body, "status": {"token": f"token-{given}", "expirationTimestamp": rfc3339(expires)}}

        self.server.answer("POST", r"/serviceaccounts/robot/token$", give)


@asynccontextmanager
async def running(node: Node) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(node.bundles.run())
        await asyncio.sleep(0)
        yield
        task.cancel()


def pod(source: dict[str, Any], meta: dict[str, Any] | None = None, **spec: Any) -> Pod:
    """A pod with one volume `v` of that source, mounted in its container."""
    main = {"volumeMounts": [{"name": "v", "mountPath": "/v"}], **spec.pop("container", {})}
    return pod_of(main, meta=meta, volumes=[{"name": "v", **source}], **spec)
