"""configMap, secret, downwardAPI and projected volumes on a real directory tree, with mounts in memory. Quotes:
behaviours.md §22."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from glasslet.api.configdata import ConfigMap
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.times import rfc3339
from glasslet.api.volume import DownwardAPIVolumeFile
from glasslet.concurrency.clock import LoopClock
from glasslet.host.files.atomic_files import FileContent
from glasslet.host.files.layout import RootLayout
from glasslet.kubeapi.objects.pod_objects import Detection, build_pod_objects
from glasslet.kubeapi.objects.tokens import ServiceAccountTokens
from glasslet.kubeapi.objects.trust_bundles import TrustBundles
from glasslet.podspec.downward import file_text
from glasslet.podspec.errors import ConfigError
from glasslet.volumes.data_sources import NoCluster
from glasslet.volumes.errors import VolumeNotReady
from glasslet.volumes.file_volume import MAX_BYTES, MAX_FILES, FileVolumes, Memory, check_amount, nested_mounts
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from glasslet.volumes.problems import joined
from glasslet.volumes.types.config_map import ConfigMapVolume
from glasslet.volumes.types.downward_api import DownwardAPIVolume
from glasslet.volumes.types.projected import ProjectedVolume, Projections
from glasslet.volumes.types.secret import SecretVolume
from tests.builders.objects import config_map, secret
from tests.builders.podspec import node_facts, pod_of
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.claims import NO_CLAIMS
from tests.fakes.inline_threads import HeldThreads, InlineThreads
from tests.fakes.mounts import FakeMounts
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.looptime

REF = PodRef("default", "web", PodUID("uid-1"))
VOLUMES = "pods/uid-1/volumes"
NOTES = "pods/uid-1/plugins/kubernetes.io~empty-dir"


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


async def test_config_map_is_shown_as_files_on_disk_read_only(tmp_path: Path) -> None:
    # behaviours.md §22: "Secrets, downward and whole projected volumes on tmpfs; configMaps on disk."
    node = Node(tmp_path)
    node.server.put("configmaps", config_map("settings", **{"app.conf": "a=1", "mode": "fast"}))
    volumes = await node.manager.prepare(pod({"configMap": {"name": "settings"}}))
    assert volumes["v"].path == str(tmp_path / VOLUMES / "kubernetes.io~configmap/v")
    assert volumes["v"].read_only
    assert volumes["v"].selinux_relabel
    assert node.files("configmap") == {"app.conf": "a=1", "mode": "fast"}
    assert node.mounts.table().entries == ()


# "Secrets, downward and whole projected volumes on tmpfs"
async def test_secret_is_shown_in_memory(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.server.put("secrets", secret("db", password="hunter2"))
    volumes = await node.manager.prepare(pod({"secret": {"secretName": "db"}}))
    (mounted,) = node.mounts.table().entries
    assert (mounted.fs_type, mounted.path) == ("tmpfs", volumes["v"].path)
    assert mounted.option("size") == str(1 << 20)
    assert node.files("secret") == {"password": "hunter2"}


# "Ready markers: empty file `ready` in ... .../wrapped_<volume>/ for secret, configMap, downwardAPI and projected"
async def test_ready_mark_is_where_the_go_kubelet_looks(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.server.put("secrets", secret("db", password="x"))
    await node.manager.prepare(pod({"secret": {"secretName": "db"}}))
    assert (tmp_path / NOTES / "wrapped_v/ready").read_bytes() == b""


# "Modes: defaultMode 0644; per item mode."
async def test_items_choose_keys_paths_and_modes(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.server.put("configmaps", config_map("settings", one="1", two="2", three="3"))
    items = [{"key": "one", "path": "deep/down/one"}, {"key": "two", "path": "two", "mode": 0o400}]
    await node.manager.prepare(pod({"configMap": {"name": "settings", "items": items, "defaultMode": 0o440}}))
    assert node.files("configmap") == {"deep/down/one": "1", "two": "2"}
    assert (node.mode("configmap", "deep/down/one"), node.mode("configmap", "two")) == (0o440, 0o400)


async def test_binary_data_is_shown_as_it_is(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.server.put("configmaps", {**config_map("settings", text="t"), "binaryData": {"raw": "AP/+"}})
    await node.manager.prepare(pod({"configMap": {"name": "settings"}}))
    assert (tmp_path / VOLUMES / "kubernetes.io~configmap/v/raw").read_bytes() == b"\0\xff\xfe"
    assert node.mode("configmap", "raw") == 0o644


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMap": {"name": "gone"}}, 'configmaps "gone" not found'),
        ({"secret": {"secretName": "gone"}}, 'secrets "gone" not found'),
        (
            {"configMap": {"name": "settings", "items": [{"key": "k", "path": "k"}]}},
            "configmap references non-existent config key: k",
        ),
        (
            {"secret": {"secretName": "db", "items": [{"key": "k", "path": "k"}]}},
            "references non-existent secret key: k",
        ),
    ],
)
async def test_what_is_missing_is_named_unless_it_is_optional(
    tmp_path: Path, source: dict[str, Any], message: str
) -> None:
    node = Node(tmp_path)
    node.server.put("configmaps", config_map("settings", one="1"))
    node.server.put("secrets", secret("db", one="1"))
    with pytest.raises(VolumeNotReady) as problem:
        await node.manager.prepare(pod(source))
    assert problem.value.message == f'MountVolume.SetUp failed for volume "v" : {message}'
    (inner,) = source.values()
    inner["optional"] = True
    await node.manager.prepare(pod(source))
    assert node.files(next(iter(source)).lower()) == {}


async def test_a_change_is_shown_and_a_deleted_key_goes(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.server.put("configmaps", config_map("settings", a="1", b="1"))
    web = pod({"configMap": {"name": "settings"}})
    await node.manager.prepare(web)
    node.server.put("configmaps", config_map("settings", a="2"))
    await node.manager.refresh(web)
    assert node.files("configmap") == {"a": "2"}


async def test_an_object_that_was_deleted_leaves_the_volume_as_it_was(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.server.put("secrets", secret("db", a="1"))
    web = pod({"secret": {"secretName": "db"}})
    await node.manager.prepare(web)
    node.server.remove("secrets", "default", "db")
    with pytest.raises(VolumeNotReady, match='"db" not found'):
        await node.manager.refresh(web)
    assert node.files("secret") == {"a": "1"}


async def test_a_filled_volume_needs_no_server_to_be_prepared_again(tmp_path: Path) -> None:
    """1. A volume is filled. 2. The API server goes away and the agent is restarted. 3. A container of the pod crashes:
    its volumes are ready, so that it can be started."""
    node = Node(tmp_path)
    node.server.put("configmaps", config_map("settings", a="1"))
    web = pod({"configMap": {"name": "settings"}})
    await node.manager.prepare(web)
    again = Node(tmp_path, server=node.server)
    node.server.down = True
    assert "v" in await again.manager.prepare(web)
    assert again.files("configmap") == {"a": "1"}


async def test_a_volume_that_never_was_filled_is_not_ready_without_a_server(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.server.down = True
    with pytest.raises(VolumeNotReady, match="connection refused"):
        await node.manager.prepare(pod({"configMap": {"name": "settings"}}))


# "fieldRef ... In volumes: metadata.name, .namespace, .uid, .labels, .annotations (all or one key)." (§21)
async def test_fields_of_the_pod_are_files_and_follow_it(tmp_path: Path) -> None:
    node = Node(tmp_path)
    fields = {
        "name": "metadata.name",
        "meta/uid": "metadata.uid",
        "labels": "metadata.labels",
        "tier": "metadata.labels['tier']",
    }
    items: list[dict[str, Any]] = [{"path": p, "fieldRef": {"fieldPath": f}} for p, f in fields.items()]
    items.append({"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}})
    source = {"downwardAPI": {"items": items}}
    limits = {"resources": {"limits": {"cpu": "1500m"}}}
    await node.manager.prepare(pod(source, meta={"labels": {"app": 'a"b', "tier": "1"}}, container=limits))
    assert node.files("downward-api") == {
        "name": "web",
        "meta/uid": "uid-1",
        "labels": 'app="a\\"b"\ntier="1"',
        "tier": "1",
        "cpu": "2",
    }
    await node.manager.refresh(pod(source, meta={"labels": {"tier": "2"}}, container=limits))
    assert node.files("downward-api")["tier"] == "2"


async def test_all_fields_that_are_not_offered_are_named_at_once(tmp_path: Path) -> None:
    items = [
        {"path": "a", "fieldRef": {"fieldPath": "status.podIP"}},
        {"path": "b", "fieldRef": {"fieldPath": "spec.nodeName"}},
    ]
    with pytest.raises(VolumeNotReady) as problem:
        await Node(tmp_path).manager.prepare(pod({"downwardAPI": {"items": items}}))
    assert problem.value.message.endswith(
        " : [unsupported fieldPath: status.podIP, unsupported fieldPath: spec.nodeName]"
    )


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


async def test_the_volume_that_every_pod_has(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.answer_tokens()
    node.server.put("configmaps", config_map("kube-root-ca.crt", **{"ca.crt": "PEM"}))
    web = pod(ACCESS, serviceAccountName="robot")
    await node.manager.prepare(web)
    assert node.files("projected") == {"token": "token-1", "ca.crt": "PEM", "namespace": "default"}
    assert [entry.fs_type for entry in node.mounts.table().entries] == ["tmpfs"]
    await asyncio.sleep(3000)
    await node.manager.refresh(web)
    assert node.files("projected")["token"] == "token-2"


# "mode 0600 when all containers (init, ephemeral too) share one runAsUser (file owned by it) or fsGroup is set (then
# 0640 in the end), else defaultMode"
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize(
    ("spec", "mode", "owner", "group"),
    [
        ({}, 0o644, 0, 0),
        ({"securityContext": {"runAsUser": 1234}}, 0o600, 1234, 0),
        ({"securityContext": {"fsGroup": 4321}}, 0o640, 0, 4321),
        ({"securityContext": {"runAsUser": 1234, "fsGroup": 4321}}, 0o640, 1234, 4321),
        (
            {
                "securityContext": {"runAsUser": 1234},
                "initContainers": [{"name": "i", "securityContext": {"runAsUser": 0}}],
            },
            0o644,
            0,
            0,
        ),
        ({"container": {"securityContext": {"runAsUser": 1234}}, "initContainers": [{"name": "i"}]}, 0o644, 0, 0),
    ],
)
async def test_token_is_for_those_who_need_it(
    tmp_path: Path, spec: dict[str, Any], mode: int, owner: int, group: int
) -> None:
    node = Node(tmp_path)
    node.answer_tokens()
    await node.manager.prepare(pod({"projected": {"sources": [TOKEN]}}, serviceAccountName="robot", **spec))
    info = (tmp_path / VOLUMES / "kubernetes.io~projected/v/token").stat()
    assert (stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid) == (mode, owner, group)


# "files get |=0660, in read-only volumes |=0440; directories also setgid and g+x"
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
async def test_fs_group_gets_every_version_of_the_volume(tmp_path: Path) -> None:
    node = Node(tmp_path)
    web = pod({"configMap": {"name": "settings", "defaultMode": 0o400}}, securityContext={"fsGroup": 4321})
    for content in "12":
        node.server.put("configmaps", config_map("settings", a=content))
        await node.manager.prepare(web)
        path = tmp_path / VOLUMES / "kubernetes.io~configmap/v"
        assert node.mode("configmap", "a") == 0o440
        assert {path.stat().st_gid, (path / "..data").stat().st_gid, (path / "a").stat().st_gid} == {4321}
        assert (path / "..data").stat().st_mode & stat.S_ISGID


async def test_later_sources_of_a_projected_volume_go_before_earlier_ones(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.server.put("configmaps", config_map("settings", a="map", b="map"))
    node.server.put("secrets", secret("db", b="secret"))
    sources = [{"configMap": {"name": "settings"}}, {"secret": {"name": "db"}}]
    await node.manager.prepare(pod({"projected": {"sources": sources}}))
    assert node.files("projected") == {"a": "map", "b": "secret"}


async def test_all_problems_of_a_projected_volume_are_named_at_once(tmp_path: Path) -> None:
    sources = [
        {"configMap": {"name": "gone"}},
        {"secret": {"name": "gone"}},
        {"secret": {"name": "x", "optional": True}},
    ]
    with pytest.raises(VolumeNotReady) as problem:
        await Node(tmp_path).manager.prepare(pod({"projected": {"sources": sources}}))
    assert problem.value.message.endswith(' : [configmaps "gone" not found, secrets "gone" not found]')


# "clusterTrustBundle (gate ClusterTrustBundleProjection, beta, off) and podCertificate (gate PodCertificateRequest,
# alpha, off)."
async def test_trust_bundles_are_shown_where_their_gate_is_on(tmp_path: Path) -> None:
    certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    source = {"projected": {"sources": [{"clusterTrustBundle": {"name": "one", "path": "ca.pem"}}]}}
    node = Node(tmp_path, trust_bundles=True)
    node.server.put("clustertrustbundles", {"metadata": {"name": "one"}, "spec": {"trustBundle": certificate}})
    async with running(node):
        await node.manager.prepare(pod(source))
    assert node.files("projected") == {"ca.pem": certificate}
    with pytest.raises(VolumeNotReady, match="need the feature gate ClusterTrustBundleProjection, which is off"):
        await Node(tmp_path / "other").manager.prepare(pod(source))


async def test_pod_certificates_say_which_gate_they_need(tmp_path: Path) -> None:
    source = {"projected": {"sources": [{"podCertificate": {"signerName": "s", "keyType": "ED25519", "keyPath": "k"}}]}}
    with pytest.raises(VolumeNotReady, match="not served here, whatever the feature gate PodCertificateRequest says"):
        await Node(tmp_path).manager.prepare(pod(source))


@pytest.mark.parametrize("path", ["../out", "..data/x", "a/../../out", "/etc/passwd"])
async def test_no_key_and_no_item_writes_outside_the_volume(tmp_path: Path, path: str) -> None:
    node = Node(tmp_path / "root")
    node.server.put("configmaps", config_map("settings", **{"a": "1", path: "evil"}))
    for source in (
        {"configMap": {"name": "settings"}},
        {"configMap": {"name": "settings", "items": [{"key": "a", "path": path}]}},
    ):
        with pytest.raises(VolumeNotReady, match="invalid path"):
            await node.manager.prepare(pod(source))
    assert not [one for one in tmp_path.rglob("*") if one.is_file() and one.name != "ready"]


async def test_mounts_inside_the_volume_find_a_place(tmp_path: Path) -> None:
    """The volume is read-only: the runtime could not make the directory on which another volume is mounted."""
    node = Node(tmp_path)
    node.server.put("configmaps", config_map("settings", a="1"))
    mounts = [
        {"name": "v", "mountPath": "/v/"},
        {"name": "cache", "mountPath": "/v/cache"},
        {"name": "cache", "mountPath": "/v/cache/deep"},
        {"name": "cache", "mountPath": "/v-other/x"},
    ]
    await node.manager.prepare(pod({"configMap": {"name": "settings"}}, container={"volumeMounts": mounts}))
    path = tmp_path / VOLUMES / "kubernetes.io~configmap/v"
    assert sorted(name for name in os.listdir(path) if not name.startswith("..")) == ["a", "cache"]
    assert os.listdir(path / "cache") == []


def test_thousands_of_mounts_inside_a_volume_are_sorted_out_at_once() -> None:
    mounts = [{"name": "v", "mountPath": path} for path in ("/v", *(f"/v/{number}/x" for number in range(8000)))]
    mounts += [{"name": "v", "mountPath": f"/v/{number}"} for number in range(4000)]
    pod = pod_of({"volumeMounts": mounts}, volumes=[{"name": "v", "configMap": {"name": "c"}}])
    began = time.perf_counter()
    found = nested_mounts(VolumeRequest(pod=pod, volume=pod.spec.volumes[0]))
    assert time.perf_counter() - began < 2
    outermost = {str(number) for number in range(4000)} | {f"{number}/x" for number in range(4000, 8000)}
    assert found == outermost | {"x"}


async def test_tear_down_leaves_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.answer_tokens()
    node.server.put("configmaps", config_map("kube-root-ca.crt", **{"ca.crt": "PEM"}))
    node.server.put("secrets", secret("db", a="1"))
    web = pod_of(
        {"volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in "abcd"]},
        volumes=[
            {"name": "a", **ACCESS},
            {"name": "b", "secret": {"secretName": "db"}},
            {"name": "c", "configMap": {"name": "kube-root-ca.crt"}},
            {"name": "d", "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        ],
        serviceAccountName="robot",
    )
    await node.manager.prepare(web)
    await node.manager.tear_down(REF)
    await node.manager.tear_down(REF)
    assert node.mounts.table().entries == ()
    assert [str(one) for one in tmp_path.rglob("*") if not one.is_dir()] == []
    assert list((tmp_path / NOTES).iterdir()) == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ({"configMap": {"name": "settings"}}, "configmap default/settings"),
        ({"secret": {"secretName": "db", "optional": True}}, "secret default/db"),
        ({"projected": {"sources": [TOKEN]}}, "token of service account default/"),
    ],
)
async def test_an_agent_on_its_own_says_what_needs_an_api_server(
    tmp_path: Path, source: dict[str, Any], what: str
) -> None:
    with pytest.raises(VolumeNotReady, match=f"{what}.* needs an API server, and this agent runs without one"):
        await Node(tmp_path).standalone().prepare(pod(source))


async def test_an_agent_on_its_own_shows_fields_of_the_pod(tmp_path: Path) -> None:
    node = Node(tmp_path)
    item = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    await node.standalone().prepare(pod({"projected": {"sources": [{"downwardAPI": {"items": [item]}}]}}))
    assert node.files("projected") == {"name": "web"}


async def test_data_is_written_in_a_thread_and_not_on_the_event_loop(tmp_path: Path) -> None:
    threads = HeldThreads()
    files = FileVolumes(
        root=RootLayout(str(tmp_path)),
        mounts=FakeMounts(),
        threads=threads,
        clock=LoopClock(),
        memory=Memory(pod_limit=lambda pod: 0, allocatable=lambda: 0),
    )
    plugin = DownwardAPIVolume(volumes=files, field_text=field_text)
    one = pod({"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}})
    setting_up = asyncio.create_task(plugin.set_up(VolumeRequest(pod=one, volume=one.spec.volumes[0])))
    await asyncio.sleep(0)
    assert os.listdir(tmp_path) == []
    threads.released.set()
    assert os.path.exists(f"{(await setting_up).path}/labels")


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({str(number): FileContent(data=b"") for number in range(MAX_FILES + 1)}, f"{MAX_FILES + 1} files; at most"),
        ({"a": FileContent(data=b"x" * MAX_BYTES), "b": FileContent(data=b"x")}, f"{MAX_BYTES + 1} bytes; at most"),
    ],
    ids=["files", "bytes"],
)
def test_a_volume_of_data_has_an_end(files: dict[str, FileContent], problem: str) -> None:
    with pytest.raises(VolumeProblem, match=problem):
        check_amount(files)


async def test_10000_projected_sources_are_collected_without_holding_the_event_loop(tmp_path: Path) -> None:
    data = NoCluster()
    sources = [{"configMap": {"name": f"c{number}"}} for number in range(10_000)]
    source = ProjectedVolume(
        volumes=cast("FileVolumes", None), projections=Projections(objects=Large(), tokens=data, field_text=field_text)
    )
    one = pod({"projected": {"sources": sources}})
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    with pytest.raises(VolumeProblem, match=f"at most {MAX_BYTES} are written into one volume"):
        await source.files(VolumeRequest(pod=one, volume=one.spec.volumes[0]))
    counting.cancel()
    # 64 of a megabyte each fill it; the rest is not even asked for.
    assert turns >= 2
    assert Large.asked <= 150


class Large(NoCluster):
    """ConfigMaps of one megabyte each, of which all are there."""

    asked = 0

    async def config_map(self, namespace: str, name: str) -> ConfigMap:
        Large.asked += 1
        return ConfigMap(binary_data={name: bytes(1 << 20)})


def test_thousands_of_missing_sources_are_one_text_of_moderate_length() -> None:
    problem = joined([VolumeProblem(f'configmap "c{number}" not found') for number in range(10_000)])
    assert len(str(problem)) < 4000
    assert str(problem).endswith('configmap "c49" not found, and 9950 more]')
