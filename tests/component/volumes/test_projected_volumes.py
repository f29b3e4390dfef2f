"""Projected volumes: several sources, one folder. Quotes are of behaviours.md §22."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any, cast

import pytest

from glasslet.api.configdata import ConfigMap
from glasslet.volumes.data_sources import NoCluster
from glasslet.volumes.errors import VolumeNotReady
from glasslet.volumes.file_volume import MAX_BYTES, FileVolumes
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from glasslet.volumes.problems import joined
from glasslet.volumes.types.projected import ProjectedVolume, Projections
from tests.builders.objects import config_map, secret
from tests.component.file_volume_world import ACCESS, TOKEN, VOLUMES, Node, field_text, pod, running

pytestmark = pytest.mark.looptime


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
