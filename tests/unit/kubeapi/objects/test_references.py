"""Which objects a pod names."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.kubeapi.objects.references import config_map_names, secret_names
from tests.builders.podspec import pod_of


def _volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


@pytest.mark.parametrize(
    "spec",
    [
        {"imagePullSecrets": [{"name": "x"}]},
        _volume(secret={"secretName": "x"}),
        _volume(secret={"secretName": "x", "optional": True}),
        _volume(projected={"sources": [{"downwardAPI": {}}, {"secret": {"name": "x"}}]}),
        _volume(csi={"driver": "d", "nodePublishSecretRef": {"name": "x"}}),
        _volume(azureFile={"secretName": "x", "shareName": "s"}),
        _volume(cephfs={"secretRef": {"name": "x"}}),
        _volume(cinder={"volumeID": "c", "secretRef": {"name": "x"}}),
        _volume(flexVolume={"driver": "d", "secretRef": {"name": "x"}}),
        _volume(iscsi={"targetPortal": "p", "iqn": "q", "lun": 0, "secretRef": {"name": "x"}}),
        _volume(rbd={"image": "i", "secretRef": {"name": "x"}}),
        _volume(scaleIO={"gateway": "g", "secretRef": {"name": "x"}}),
        _volume(storageos={"secretRef": {"name": "x"}}),
        {"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "x"}}]}]},
        {
            "ephemeralContainers": [
                {"name": "e", "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}]}
            ]
        },
    ],
)
def test_every_place_that_may_name_a_secret_counts(spec: dict[str, Any]) -> None:
    assert secret_names(pod_of(**spec)) == {"x"}
    assert config_map_names(pod_of(**spec)) == set()


@pytest.mark.parametrize(
    "spec",
    [
        _volume(configMap={"name": "x"}),
        _volume(projected={"sources": [{"configMap": {"name": "x", "optional": True}}]}),
        {"initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "x"}}]}]},
        {
            "initContainers": [
                {"name": "i", "env": [{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "k"}}}]}
            ]
        },
    ],
)
def test_every_place_that_may_name_a_config_map_counts(spec: dict[str, Any]) -> None:
    assert config_map_names(pod_of(**spec)) == {"x"}
    assert secret_names(pod_of(**spec)) == set()


def test_empty_names_name_nothing() -> None:
    pod = pod_of({"envFrom": [{"secretRef": {"name": ""}}]}, imagePullSecrets=[{"name": ""}], **_volume(configMap={}))
    assert secret_names(pod) == set()
    assert config_map_names(pod) == set()
