"""configMap, secret, downwardAPI and projected volumes on a real directory tree, with mounts in memory. Quotes:
behaviours.md §22."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.host.files.atomic_files import FileContent
from glasslet.host.files.layout import RootLayout
from glasslet.volumes.errors import VolumeNotReady
from glasslet.volumes.file_volume import MAX_BYTES, MAX_FILES, FileVolumes, Memory, check_amount, nested_mounts
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from glasslet.volumes.types.downward_api import DownwardAPIVolume
from tests.builders.objects import config_map, secret
from tests.builders.podspec import pod_of
from tests.component.file_volume_world import ACCESS, NOTES, REF, TOKEN, VOLUMES, Node, field_text, pod
from tests.fakes.inline_threads import HeldThreads
from tests.fakes.mounts import FakeMounts

pytestmark = pytest.mark.looptime


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
